// SPDX-License-Identifier: Apache-2.0

package model

import (
	"encoding/json"
	"strings"
)

// geminiURL is where the Gemini interface is.
const geminiURL = "https://generativelanguage.googleapis.com/"

// geminiFormat is the Gemini interface.
type geminiFormat struct{}

type (
	geminiRequest struct {
		System   geminiContent   `json:"systemInstruction"`
		Contents []geminiContent `json:"contents"`
		Config   geminiConfig    `json:"generationConfig"`
	}
	geminiConfig struct {
		Candidates int             `json:"candidateCount"`
		MaxTokens  int64           `json:"maxOutputTokens"`
		MIMEType   string          `json:"responseMimeType"`
		Schema     json.RawMessage `json:"responseJsonSchema"`
	}
	geminiContent struct {
		Role  string       `json:"role"`
		Parts []geminiPart `json:"parts"`
	}
	geminiPart struct {
		Text    string `json:"text"`
		Thought bool   `json:"thought,omitempty"`
	}
	geminiResponse struct {
		Candidates []geminiCandidate `json:"candidates"`
		Feedback   geminiFeedback    `json:"promptFeedback"`
		Usage      *geminiUsage      `json:"usageMetadata"`
	}
	geminiCandidate struct {
		Content      geminiContent `json:"content"`
		FinishReason string        `json:"finishReason"`
	}
	geminiFeedback struct {
		BlockReason string `json:"blockReason"`
	}
	geminiUsage struct {
		Prompt     int64 `json:"promptTokenCount"`
		ToolPrompt int64 `json:"toolUsePromptTokenCount"`
		Candidates int64 `json:"candidatesTokenCount"`
		Thoughts   int64 `json:"thoughtsTokenCount"`
	}
)

func (geminiFormat) headers(key string) map[string]string {
	return map[string]string{"X-Goog-Api-Key": key}
}

// encode returns "" as the path if the model's name would change where the request goes.
func (geminiFormat) encode(r Request) (path string, body any) {
	if strings.ContainsAny(r.Model, "?&%#") || strings.Contains(r.Model, "..") {
		return "", nil
	}
	name := r.Model
	if !strings.HasPrefix(name, "models/") && !strings.HasPrefix(name, "tunedModels/") {
		name = "models/" + name
	}
	q := geminiRequest{System: geminiText("user", r.System),
		Config: geminiConfig{Candidates: 1, MaxTokens: r.MaxOutput, MIMEType: "application/json", Schema: r.Schema}}
	for _, t := range r.Turns {
		q.Contents = append(q.Contents, geminiText(t.roleName("model"), t.Text))
	}
	return "v1beta/" + name + ":generateContent", q
}

func geminiText(role, s string) geminiContent { return geminiContent{role, []geminiPart{{Text: s}}} }

func (geminiFormat) decode(data []byte) (a Answer, err error) {
	var g geminiResponse
	if err := json.Unmarshal(data, &g); err != nil {
		return a, err
	}
	a = Answer{Stop: Other, Input: -1, Output: -1}
	if u := g.Usage; u != nil {
		a.Input, a.Output = u.Prompt+u.ToolPrompt, u.Candidates+u.Thoughts
	}
	blocked := g.Feedback.BlockReason != ""
	if blocked {
		a.Stop = Filter
	}
	if len(g.Candidates) != 1 {
		return a, nil
	}
	var text strings.Builder
	for _, part := range g.Candidates[0].Content.Parts {
		if !part.Thought {
			text.WriteString(part.Text)
		}
	}
	a.Text = text.String()
	if !blocked {
		a.Stop = geminiStop(g.Candidates[0].FinishReason)
	}
	return a, nil
}

func geminiStop(reason string) Stop {
	switch reason {
	case "STOP":
		return Complete
	case "MAX_TOKENS":
		return Length
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII":
		return Filter
	}
	return Other
}
