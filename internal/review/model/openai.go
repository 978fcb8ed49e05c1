// SPDX-License-Identifier: Apache-2.0

package model

import "encoding/json"

// openaiURL is where OpenAI's interface is.
const openaiURL = "https://api.openai.com/v1"

// openaiFormat is OpenAI's Chat Completions interface, which many others have too.
type openaiFormat struct{}

type (
	openaiRequest struct {
		Model     string          `json:"model"`
		MaxTokens int64           `json:"max_completion_tokens"`
		N         int             `json:"n"`
		Messages  []openaiMessage `json:"messages"`
		Format    openaiOutput    `json:"response_format"`
	}
	openaiMessage struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	openaiOutput struct {
		Type   string       `json:"type"`
		Schema openaiSchema `json:"json_schema"`
	}
	openaiSchema struct {
		Name   string          `json:"name"`
		Strict bool            `json:"strict"`
		Schema json.RawMessage `json:"schema"`
	}
	openaiResponse struct {
		Choices []openaiChoice `json:"choices"`
		Usage   *openaiUsage   `json:"usage"`
	}
	openaiChoice struct {
		FinishReason string       `json:"finish_reason"`
		Message      openaiAnswer `json:"message"`
	}
	openaiAnswer struct {
		Content string `json:"content"`
		Refusal string `json:"refusal"`
	}
	openaiUsage struct {
		Input  int64 `json:"prompt_tokens"`
		Output int64 `json:"completion_tokens"`
	}
)

func (openaiFormat) headers(key string) map[string]string {
	return map[string]string{"Authorization": "Bearer " + key}
}

func (openaiFormat) encode(r Request) (path string, body any) {
	q := openaiRequest{Model: r.Model, MaxTokens: r.MaxOutput, N: 1, Messages: []openaiMessage{{"system", r.System}},
		Format: openaiOutput{"json_schema", openaiSchema{"answer", true, r.Schema}}}
	for _, t := range r.Turns {
		q.Messages = append(q.Messages, openaiMessage{t.roleName("assistant"), t.Text})
	}
	return "chat/completions", q
}

func (openaiFormat) decode(data []byte) (a Answer, err error) {
	var c openaiResponse
	if err := json.Unmarshal(data, &c); err != nil {
		return a, err
	}
	a = Answer{Stop: Other, Input: -1, Output: -1}
	if c.Usage != nil {
		a.Input, a.Output = c.Usage.Input, c.Usage.Output
	}
	if len(c.Choices) != 1 {
		return a, nil
	}
	choice := c.Choices[0]
	a.Text = choice.Message.Content
	switch {
	case choice.Message.Refusal != "":
		a.Stop = Refusal
	case choice.FinishReason == "stop":
		a.Stop = Complete
	case choice.FinishReason == "length":
		a.Stop = Length
	case choice.FinishReason == "content_filter":
		a.Stop = Filter
	}
	return a, nil
}
