// SPDX-License-Identifier: Apache-2.0

package modeltest

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/fumehood/fumehood/internal/review/model"
)

// text is a part of a message.
type text struct {
	Type string `json:"type,omitempty"`
	Text string `json:"text"`
}

// anthropic is the Messages interface.
type anthropic struct{}

func (anthropic) name() string               { return "anthropic" }
func (anthropic) key(r *http.Request) string { return r.Header.Get("X-Api-Key") }

func (anthropic) read(r *http.Request, data []byte) (a ReceivedRequest, err error) {
	var q struct {
		Model     string `json:"model"`
		MaxTokens int64  `json:"max_tokens"`
		System    []text `json:"system"`
		Messages  []struct {
			Role    string `json:"role"`
			Content []text `json:"content"`
		} `json:"messages"`
		OutputConfig struct {
			Format struct {
				Type   string          `json:"type"`
				Schema json.RawMessage `json:"schema"`
			} `json:"format"`
		} `json:"output_config"`
	}
	if err := decodeStrictly(data, &q); err != nil {
		return a, err
	}
	if r.Header.Get("Anthropic-Version") != "2023-06-01" || len(q.System) != 1 ||
		q.OutputConfig.Format.Type != "json_schema" {
		return a, errors.New("no version, system or schema")
	}
	a = ReceivedRequest{Model: q.Model, System: q.System[0].Text, Schema: q.OutputConfig.Format.Schema,
		MaxOutput: q.MaxTokens}
	for _, m := range q.Messages {
		a.Turns = append(a.Turns, model.Turn{Model: m.Role == "assistant", Text: m.Content[0].Text})
	}
	return a, nil
}

func (anthropic) write(a ReceivedRequest, s ScriptedAnswer) any {
	stop := map[model.Stop]string{model.Complete: "end_turn", model.Length: "max_tokens", model.Refusal: "refusal",
		model.Filter: "refusal", model.TooLong: "model_context_window_exceeded"}[s.Stop]
	body := map[string]any{"id": "msg_1", "type": "message", "role": "assistant", "model": a.Model,
		"content": []text{{"text", s.Text}}, "stop_reason": stop, "stop_sequence": nil}
	if s.Input >= 0 {
		body["usage"] = map[string]any{"input_tokens": s.Input, "output_tokens": s.Output,
			"cache_creation_input_tokens": nil, "cache_read_input_tokens": 0}
	}
	return body
}

// openai is the Chat Completions interface.
type openai struct{}

func (openai) name() string { return "openai" }
func (openai) key(r *http.Request) string {
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if scheme != "Bearer" {
		return ""
	}
	return key
}

func (openai) read(_ *http.Request, data []byte) (a ReceivedRequest, err error) {
	var q struct {
		Model    string `json:"model"`
		Max      int64  `json:"max_completion_tokens"`
		N        int    `json:"n"`
		Messages []struct {
			Role    string `json:"role"`
			Content string `json:"content"`
		} `json:"messages"`
		Format struct {
			Type string `json:"type"`
			JSON struct {
				Name   string          `json:"name"`
				Strict bool            `json:"strict"`
				Schema json.RawMessage `json:"schema"`
			} `json:"json_schema"`
		} `json:"response_format"`
	}
	if err := decodeStrictly(data, &q); err != nil {
		return a, err
	}
	if q.N != 1 || len(q.Messages) == 0 || q.Messages[0].Role != "system" || q.Format.Type != "json_schema" ||
		!q.Format.JSON.Strict {
		return a, errors.New("no system or schema")
	}
	a = ReceivedRequest{Model: q.Model, System: q.Messages[0].Content, Schema: q.Format.JSON.Schema, MaxOutput: q.Max}
	for _, m := range q.Messages[1:] {
		a.Turns = append(a.Turns, model.Turn{Model: m.Role == "assistant", Text: m.Content})
	}
	return a, nil
}

func (openai) write(a ReceivedRequest, s ScriptedAnswer) any {
	stop := map[model.Stop]string{model.Complete: "stop", model.Refusal: "stop", model.Length: "length",
		model.Filter: "content_filter"}[s.Stop]
	message := map[string]any{"role": "assistant", "content": s.Text, "refusal": nil}
	if s.Stop == model.Refusal {
		message["refusal"] = "no"
	}
	body := map[string]any{"id": "c", "object": "chat.completion", "created": 1, "model": a.Model,
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": stop}}}
	if s.Input >= 0 {
		body["usage"] = map[string]any{"prompt_tokens": s.Input, "completion_tokens": s.Output,
			"total_tokens": s.Input + s.Output}
	}
	return body
}

// gemini is the generateContent interface.
type gemini struct{}

func (gemini) name() string               { return "gemini" }
func (gemini) key(r *http.Request) string { return r.Header.Get("X-Goog-Api-Key") }

func (gemini) read(r *http.Request, data []byte) (a ReceivedRequest, err error) {
	type content struct {
		Role  string `json:"role"`
		Parts []text `json:"parts"`
	}
	var q struct {
		Contents []content `json:"contents"`
		System   content   `json:"systemInstruction"`
		Config   struct {
			Max    int64           `json:"maxOutputTokens"`
			N      int             `json:"candidateCount"`
			MIME   string          `json:"responseMimeType"`
			Schema json.RawMessage `json:"responseJsonSchema"`
		} `json:"generationConfig"`
	}
	if err := decodeStrictly(data, &q); err != nil {
		return a, err
	}
	name, is := strings.CutSuffix(r.PathValue("call"), ":generateContent")
	if !is || q.Config.N != 1 || q.Config.MIME != "application/json" || len(q.System.Parts) != 1 {
		return a, errors.New("no call, system or schema")
	}
	a = ReceivedRequest{Model: name, System: q.System.Parts[0].Text, Schema: q.Config.Schema, MaxOutput: q.Config.Max}
	for _, c := range q.Contents {
		a.Turns = append(a.Turns, model.Turn{Model: c.Role == "model", Text: c.Parts[0].Text})
	}
	return a, nil
}

func (gemini) write(_ ReceivedRequest, s ScriptedAnswer) any {
	stop := map[model.Stop]string{model.Complete: "STOP", model.Length: "MAX_TOKENS", model.Refusal: "SAFETY",
		model.Filter: "PROHIBITED_CONTENT"}[s.Stop]
	body := map[string]any{"candidates": []any{map[string]any{"content": map[string]any{"role": "model",
		"parts": []text{{Text: s.Text}}}, "finishReason": stop}}}
	if s.Input >= 0 {
		body["usageMetadata"] = map[string]any{"promptTokenCount": s.Input, "candidatesTokenCount": s.Output,
			"totalTokenCount": s.Input + s.Output}
	}
	return body
}
