// SPDX-License-Identifier: Apache-2.0

package model

import (
	"encoding/json"
	"strings"
)

// anthropicURL is where Anthropic's interface is, and anthropicVersion the version of it that
// these types describe.
const (
	anthropicURL     = "https://api.anthropic.com"
	anthropicVersion = "2023-06-01"
)

// anthropicFormat is Anthropic's Messages interface.
type anthropicFormat struct{}

type (
	anthropicRequest struct {
		Model        string             `json:"model"`
		MaxTokens    int64              `json:"max_tokens"`
		System       []anthropicBlock   `json:"system"`
		Messages     []anthropicMessage `json:"messages"`
		OutputConfig anthropicOutput    `json:"output_config"`
	}
	anthropicMessage struct {
		Role    string           `json:"role"`
		Content []anthropicBlock `json:"content"`
	}
	anthropicOutput struct {
		Format anthropicSchema `json:"format"`
	}
	anthropicSchema struct {
		Type   string          `json:"type"`
		Schema json.RawMessage `json:"schema"`
	}
	anthropicBlock struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	anthropicResponse struct {
		Content    []anthropicBlock `json:"content"`
		StopReason string           `json:"stop_reason"`
		Usage      *anthropicUsage  `json:"usage"`
	}
	anthropicUsage struct {
		Input        int64 `json:"input_tokens"`
		CacheCreated int64 `json:"cache_creation_input_tokens"`
		CacheRead    int64 `json:"cache_read_input_tokens"`
		Output       int64 `json:"output_tokens"`
	}
)

func (anthropicFormat) headers(key string) map[string]string {
	return map[string]string{"X-Api-Key": key, "Anthropic-Version": anthropicVersion}
}

func (anthropicFormat) encode(r Request) (path string, body any) {
	q := anthropicRequest{Model: r.Model, MaxTokens: r.MaxOutput, System: anthropicText(r.System),
		OutputConfig: anthropicOutput{anthropicSchema{"json_schema", r.Schema}}}
	for _, t := range r.Turns {
		q.Messages = append(q.Messages, anthropicMessage{t.roleName("assistant"), anthropicText(t.Text)})
	}
	return "v1/messages", q
}

func anthropicText(s string) []anthropicBlock { return []anthropicBlock{{"text", s}} }

func (anthropicFormat) decode(data []byte) (a Answer, err error) {
	var m anthropicResponse
	if err := json.Unmarshal(data, &m); err != nil {
		return a, err
	}
	var text strings.Builder
	for _, block := range m.Content {
		if block.Type == "text" {
			text.WriteString(block.Text)
		}
	}
	a = Answer{Text: text.String(), Stop: Other, Input: -1, Output: -1}
	if u := m.Usage; u != nil {
		a.Input, a.Output = u.Input+u.CacheCreated+u.CacheRead, u.Output
	}
	switch m.StopReason {
	case "end_turn":
		a.Stop = Complete
	case "max_tokens":
		a.Stop = Length
	case "refusal":
		a.Stop = Refusal
	case "model_context_window_exceeded":
		a.Stop = TooLong
	}
	return a, nil
}
