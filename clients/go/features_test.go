package clients_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"
)

func TestOneKeyIsEnough(t *testing.T) {
	client := connectWithOneKey(os.Getenv("BASE_URL"), os.Getenv("SERVICE_KEY"))
	id := newSession()
	if _, err := client.Chat.Completions.New(t.Context(), says(openai.UserMessage("The train leaves at noon.")), session(id)); err != nil {
		t.Fatal(err)
	}
	text, _ := ask(t, "When does the train leave?", session(id)) // with both keys: the same tenant
	wantText(t, text, "The train leaves at noon.")
}

func TestAHeaderNamesTheSession(t *testing.T) {
	thread := option.WithHeader("X-Thread", newSession())
	ask(t, "The train leaves at noon.", thread)
	text, _ := ask(t, "When does the train leave?", thread)
	wantText(t, text, "Earlier you said: “The train leaves at noon.”")
}

func TestStructuredOutput(t *testing.T) {
	params := says(openai.UserMessage("How warm is it in Oslo?"))
	params.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{
		JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
			Name: "weather", Strict: openai.Bool(true),
			Schema: map[string]any{
				"type": "object", "required": []string{"city", "degrees"}, "additionalProperties": false,
				"properties": map[string]any{"city": map[string]any{"type": "string"}, "degrees": map[string]any{"type": "number"}},
			},
		},
	}
	text, _, _ := complete(t, params, session(newSession()))
	var weather struct {
		City    *string  `json:"city"`
		Degrees *float64 `json:"degrees"`
	}
	if err := json.Unmarshal([]byte(text), &weather); err != nil || weather.City == nil || weather.Degrees == nil {
		t.Errorf("got %s, %v", text, err)
	}
}

func TestImagesAreRemembered(t *testing.T) {
	id := newSession()
	const image = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	complete(t, says(openai.UserMessage([]openai.ChatCompletionContentPartUnionParam{
		openai.TextContentPart("What is in this picture?"),
		openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: image}),
	})), session(id))
	var list struct {
		Data []struct {
			Content json.RawMessage `json:"content"`
		} `json:"data"`
	}
	client := good()
	if err := client.Get(t.Context(), "sessions/"+strings.ReplaceAll(id, " ", "%20")+"/messages?order=asc", nil, &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Data) != 2 || !strings.Contains(string(list.Data[0].Content), image) {
		t.Errorf("the session holds %+v", list.Data)
	}
	_, meta := ask(t, "And now?", session(id))
	wantHistory(t, meta, 2)
}

// TestFailuresOfTheRouterAreRetried stands in for a router that fails twice.
func TestFailuresOfTheRouterAreRetried(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:"+os.Getenv("FLAKY_PORT"))
	if err != nil {
		t.Fatal(err)
	}
	var chats atomic.Int64
	router := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After-Ms", "10")
		if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		switch chats.Add(1) {
		case 1:
			w.WriteHeader(http.StatusTooManyRequests)
		case 2:
			w.WriteHeader(http.StatusInternalServerError)
		default:
			_, _ = io.WriteString(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":"at last"},"finish_reason":"stop"}]}`)
		}
	})}
	go func() { _ = router.Serve(l) }()
	t.Cleanup(func() { _ = router.Close() })

	client := good()
	id := newSession()
	flaky := []option.RequestOption{session(id), option.WithBaseURL(os.Getenv("FLAKY_URL")), option.WithMaxRetries(2)}
	got, err := client.Chat.Completions.New(t.Context(), says(openai.UserMessage("Hello there")), flaky...)
	if err != nil || got.Choices[0].Message.Content != "at last" || chats.Load() != 3 {
		t.Fatalf("after %d requests: %v, %v", chats.Load(), got, err)
	}
	_, meta := ask(t, "And now?", session(id))
	wantHistory(t, meta, 2)
}
