// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"encoding/json"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"
)

// openaiURL is where OpenAI's interface is.
const openaiURL = "https://api.openai.com/v1"

// openaiProvider speaks OpenAI's Chat Completions interface, which many others have too.
type openaiProvider struct {
	key  string
	chat openai.ChatCompletionService
}

// newOpenAI makes the service without the SDK's defaults, which read the environment.
func newOpenAI(key, base string) Provider {
	return &openaiProvider{key, openai.NewChatCompletionService(option.WithBaseURL(base), option.WithAPIKey(key), option.WithMaxRetries(0),
		option.WithHTTPClient(newClient()), option.WithRequestTimeout(maxCall))}
}

func (p *openaiProvider) Ask(ctx context.Context, r Request) (answer Answer, err error) {
	err = do(ctx, p.key, func(ctx context.Context) error {
		c, err := p.chat.New(ctx, openaiParams(r))
		if err != nil {
			return err
		}
		answer = openaiAnswer(c)
		return nil
	})
	return answer, err
}

func openaiParams(r Request) openai.ChatCompletionNewParams {
	p := openai.ChatCompletionNewParams{Model: r.Model, MaxCompletionTokens: openai.Int(r.MaxOutput), N: openai.Int(1),
		Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(r.System)}}
	for _, t := range r.Turns {
		if t.Model {
			p.Messages = append(p.Messages, openai.AssistantMessage(t.Text))
		} else {
			p.Messages = append(p.Messages, openai.UserMessage(t.Text))
		}
	}
	p.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
		Name: "answer", Strict: openai.Bool(true), Schema: json.RawMessage(r.Schema)}}
	return p
}

func openaiAnswer(c *openai.ChatCompletion) Answer {
	a := Answer{Stop: Other, Input: -1, Output: -1}
	if c.JSON.Usage.Valid() {
		a.Input, a.Output = c.Usage.PromptTokens, c.Usage.CompletionTokens
	}
	if len(c.Choices) != 1 {
		return a
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
	return a
}
