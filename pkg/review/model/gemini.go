// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"encoding/json"
	"strings"

	"google.golang.org/genai"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// geminiURL is where the Gemini interface is.
const geminiURL = "https://generativelanguage.googleapis.com/"

// geminiProvider speaks the Gemini interface.
type geminiProvider struct {
	key    string
	models *genai.Models
}

func newGemini(ctx context.Context, key, base string) (Provider, error) {
	client, err := genai.NewClient(ctx, &genai.ClientConfig{APIKey: key, Backend: genai.BackendGeminiAPI, HTTPClient: newClient(), HTTPOptions: genai.HTTPOptions{BaseURL: base}})
	if err != nil { // its text can contain the key
		return nil, &proposal.StopError{Code: "model.options", Message: "cannot make a client for gemini", Hint: "check the key and the address"}
	}
	return &geminiProvider{key, client.Models}, nil
}

func (p *geminiProvider) Ask(ctx context.Context, r Request) (answer Answer, err error) {
	turns, config, err := geminiParams(r)
	if err != nil {
		return answer, err
	}
	err = do(ctx, p.key, func(ctx context.Context) error {
		g, err := p.models.GenerateContent(ctx, r.Model, turns, config)
		if err != nil {
			return err
		}
		answer = geminiAnswer(g)
		return nil
	})
	return answer, err
}

func geminiParams(r Request) (turns []*genai.Content, config *genai.GenerateContentConfig, err error) {
	for _, t := range r.Turns {
		role := genai.Role(genai.RoleUser)
		if t.Model {
			role = genai.RoleModel
		}
		turns = append(turns, genai.NewContentFromText(t.Text, role))
	}
	var schema any
	err = json.Unmarshal(r.Schema, &schema)
	return turns, &genai.GenerateContentConfig{SystemInstruction: genai.NewContentFromText(r.System, genai.RoleUser), CandidateCount: 1,
		MaxOutputTokens: int32(r.MaxOutput), ResponseMIMEType: "application/json", ResponseJsonSchema: schema}, err
}

func geminiAnswer(g *genai.GenerateContentResponse) Answer {
	a := Answer{Stop: Other, Input: -1, Output: -1}
	if u := g.UsageMetadata; u != nil {
		a.Input, a.Output = int64(u.PromptTokenCount)+int64(u.ToolUsePromptTokenCount), int64(u.CandidatesTokenCount)+int64(u.ThoughtsTokenCount)
	}
	if g.PromptFeedback != nil && g.PromptFeedback.BlockReason != "" {
		a.Stop = Filter
	}
	if len(g.Candidates) != 1 || g.Candidates[0] == nil || g.Candidates[0].Content == nil {
		return a.stopped(g.Candidates)
	}
	var text strings.Builder
	for _, part := range g.Candidates[0].Content.Parts {
		if part != nil && !part.Thought {
			text.WriteString(part.Text)
		}
	}
	a.Text = text.String()
	return a.stopped(g.Candidates)
}

// stopped returns a with the reason of the only candidate.
func (a Answer) stopped(list []*genai.Candidate) Answer {
	if len(list) != 1 || list[0] == nil || a.Stop != Other {
		return a
	}
	switch list[0].FinishReason {
	case genai.FinishReasonStop:
		a.Stop = Complete
	case genai.FinishReasonMaxTokens:
		a.Stop = Length
	case genai.FinishReasonSafety, genai.FinishReasonRecitation, genai.FinishReasonBlocklist, genai.FinishReasonProhibitedContent, genai.FinishReasonSPII:
		a.Stop = Filter
	}
	return a
}
