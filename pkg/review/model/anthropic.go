// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

// anthropicURL is where Anthropic's interface is.
const anthropicURL = "https://api.anthropic.com"

// anthropicProvider speaks Anthropic's Messages interface.
type anthropicProvider struct {
	key      string
	messages anthropic.MessageService
}

// newAnthropic makes the service without the SDK's defaults, which read the environment.
func newAnthropic(key, base string) Provider {
	return &anthropicProvider{key, anthropic.NewMessageService(option.WithBaseURL(base), option.WithAPIKey(key), option.WithMaxRetries(0),
		option.WithHTTPClient(newClient()), option.WithRequestTimeout(maxCall))}
}

func (p *anthropicProvider) Ask(ctx context.Context, r Request) (answer Answer, err error) {
	params, err := anthropicParams(r)
	if err != nil {
		return answer, err
	}
	err = do(ctx, p.key, func(ctx context.Context) error {
		m, err := p.messages.New(ctx, params)
		if err != nil {
			return err
		}
		answer = anthropicAnswer(m)
		return nil
	})
	return answer, err
}

func anthropicParams(r Request) (p anthropic.MessageNewParams, err error) {
	p = anthropic.MessageNewParams{Model: anthropic.Model(r.Model), MaxTokens: r.MaxOutput, System: []anthropic.TextBlockParam{{Text: r.System}}}
	for _, t := range r.Turns {
		block := anthropic.NewTextBlock(t.Text)
		if t.Model {
			p.Messages = append(p.Messages, anthropic.NewAssistantMessage(block))
		} else {
			p.Messages = append(p.Messages, anthropic.NewUserMessage(block))
		}
	}
	return p, json.Unmarshal(r.Schema, &p.OutputConfig.Format.Schema)
}

func anthropicAnswer(m *anthropic.Message) Answer {
	var text strings.Builder
	for _, block := range m.Content {
		if block.Type == "text" {
			text.WriteString(block.Text)
		}
	}
	a := Answer{Text: text.String(), Stop: Other, Input: -1, Output: -1}
	if m.JSON.Usage.Valid() {
		a.Input, a.Output = m.Usage.InputTokens+m.Usage.CacheCreationInputTokens+m.Usage.CacheReadInputTokens, m.Usage.OutputTokens
	}
	switch m.StopReason {
	case anthropic.StopReasonEndTurn:
		a.Stop = Complete
	case anthropic.StopReasonMaxTokens:
		a.Stop = Length
	case anthropic.StopReasonRefusal:
		a.Stop = Refusal
	case anthropic.StopReasonModelContextWindowExceeded:
		a.Stop = TooLong
	}
	return a
}
