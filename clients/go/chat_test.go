package clients_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"
)

func TestPlainRequestIsTheRoutersReply(t *testing.T) {
	text, meta := ask(t, "Hello there")
	wantText(t, text, "1 message, 0 of them earlier")
	if meta != nil {
		t.Errorf("_metadata on a plain reply: %+v", meta)
	}
}

func TestSecondRequestOfASessionIsAnsweredFromTheFirst(t *testing.T) {
	id := newSession()
	_, meta := ask(t, "My dog's name is Rex.", session(id))
	wantHistory(t, meta, 0)
	text, meta := ask(t, "What is my dog's name?", session(id))
	wantHistory(t, meta, 2)
	wantText(t, text, "Earlier you said: “My dog's name is Rex.”")
	if meta.Memory.SessionID != id {
		t.Errorf("sessionId is %q, want %q", meta.Memory.SessionID, id)
	}
}

func TestSaveToMemoryFalseLeavesTheMemoryAsItWas(t *testing.T) {
	id := newSession()
	ask(t, "My dog's name is Rex.", session(id))
	_, meta := ask(t, "My cat's name is Tom.", session(id), option.WithJSONSet("saveToMemory", false))
	wantHistory(t, meta, 2)
	_, meta = ask(t, "What is my cat's name?", session(id))
	wantHistory(t, meta, 2)
}

func TestResentHistoryIsNeitherSuppliedNorSavedTwice(t *testing.T) {
	id := newSession()
	var messages []openai.ChatCompletionMessageParamUnion
	for turn := 1; turn <= 30; turn++ {
		messages = append(messages, openai.UserMessage(fmt.Sprintf("Fact %d: the number of box %d is %d.", turn, turn, turn*7)))
		text, meta, reply := complete(t, says(messages...), session(id))
		wantHistory(t, meta, 0)
		wantText(t, text, fmt.Sprintf(", %d of them earlier", len(messages)-1))
		if meta.Context.IncludedMessages != len(messages) {
			t.Errorf("turn %d: includedMessages is %d, want %d", turn, meta.Context.IncludedMessages, len(messages))
		}
		messages = append(messages, reply.Choices[0].Message.ToParam())
	}
	client := good()
	var stored struct {
		Data []json.RawMessage `json:"data"`
	}
	if err := client.Get(t.Context(), "sessions/"+url.PathEscape(id)+"/messages?limit=100", nil, &stored); err != nil {
		t.Fatal(err)
	}
	if len(stored.Data) != len(messages) {
		t.Errorf("%d messages are stored, want %d", len(stored.Data), len(messages))
	}
}

func TestStreamSaysWhatTheWholeReplySays(t *testing.T) {
	whole, _ := ask(t, "The bridge was built in 1890.", session(newSession()))
	id := newSession()
	got, metas := stream(t, says(openai.UserMessage("The bridge was built in 1890.")), session(id))
	if text := got.Choices[0].Message.Content; text != whole {
		t.Errorf("streamed %q, whole %q", text, whole)
	}
	if len(metas) != 1 {
		t.Fatalf("%d chunks have _metadata, want 1", len(metas))
	}
	wantHistory(t, metas[0], 0)

	text, meta := ask(t, "When was the bridge built?", session(id))
	wantHistory(t, meta, 2)
	wantText(t, text, "Earlier you said: “The bridge was built in 1890.”")
}

func TestStreamThatWasLeftAndSentAgainIsOneExchange(t *testing.T) {
	id := newSession()
	params := says(openai.UserMessage("demo:slow 20ms My parrot's name is Kiwi."))
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	client := good()
	events := client.Chat.Completions.NewStreaming(ctx, params, session(id))
	deltas := 0
	for events.Next() {
		if deltas++; deltas == 5 {
			leave()
		}
	}
	if events.Err() == nil || deltas < 5 {
		t.Fatalf("left after %d deltas: %v", deltas, events.Err())
	}
	events.Close()

	stream(t, params, session(id), option.WithHeader("x-stainless-retry-count", "1"))
	text, meta := ask(t, "What is my parrot's name?", session(id))
	wantHistory(t, meta, 2)
	wantText(t, text, "Kiwi")
}

func TestStreamedToolLoopOfASession(t *testing.T) {
	id := newSession()
	tools := []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
		Name: "get_weather",
		Parameters: shared.FunctionParameters{
			"type":       "object",
			"properties": map[string]any{"city": map[string]any{"type": "string"}},
			"required":   []string{"city"},
		},
	})}
	params := says(openai.UserMessage("Please call get_weather for Oslo."))
	params.Tools = tools
	called, _ := stream(t, params, session(id))
	calls := called.Choices[0].Message.ToolCalls
	if len(calls) != 1 || calls[0].Function.Name != "get_weather" || !json.Valid([]byte(calls[0].Function.Arguments)) {
		t.Fatalf("calls: %+v", calls)
	}

	// The result alone: the call that it belongs to comes from memory.
	params = says(openai.ToolMessage("Twelve degrees, clear sky", calls[0].ID))
	params.Tools = tools
	answered, metas := stream(t, params, session(id))
	wantText(t, answered.Choices[0].Message.Content, "The tool get_weather returned: “Twelve degrees, clear sky”")
	if len(metas) != 1 {
		t.Fatalf("%d chunks have _metadata, want 1", len(metas))
	}
	wantHistory(t, metas[0], 2)
	_, meta := ask(t, "How many degrees are there?", session(id))
	wantHistory(t, meta, 4)
}
