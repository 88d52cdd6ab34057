// Package clients_test drives a running Backstory, with the demo router behind
// it, through OpenAI's own Go client: unchanged but for the base URL and the
// header serviceKey. clients/run.sh starts one and runs the tests.
package clients_test

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

const model = "demo/large"

func TestMain(m *testing.M) {
	for _, name := range []string{"BASE_URL", "SERVICE_KEY", "FREE_KEY", "ROUTER_KEY"} {
		if os.Getenv(name) == "" {
			fmt.Fprintln(os.Stderr, name+" is not set: run these tests through clients/run.sh")
			os.Exit(2)
		}
	}
	os.Exit(m.Run())
}

// connect returns a client of the service. It doesn't retry, so that every
// request counts once.
func connect(serviceKey, routerKey string) openai.Client {
	client := connectWith(os.Getenv("BASE_URL"), routerKey, serviceKey)
	client.Options = append(client.Options, option.WithMaxRetries(0), option.WithRequestTimeout(30*time.Second))
	return openai.NewClient(client.Options...)
}

func good() openai.Client {
	return connect(os.Getenv("SERVICE_KEY"), os.Getenv("ROUTER_KEY"))
}

func newSession() string { return "go " + rand.Text() }

func session(id string) option.RequestOption { return inSession(id) }

func says(messages ...openai.ChatCompletionMessageParamUnion) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Model: model, Messages: messages}
}

// metadata is the field _metadata of a reply.
type metadata struct {
	Memory *struct {
		SessionID       string `json:"sessionId"`
		HistoryMessages int    `json:"historyMessages"`
	} `json:"memory"`
	RAG struct {
		Enabled bool   `json:"enabled"`
		Query   string `json:"query"`
		Sources []struct {
			FileID   string `json:"fileId"`
			Filename string `json:"filename"`
		} `json:"sources"`
	} `json:"rag"`
	Context struct {
		IncludedMessages int `json:"includedMessages"`
	} `json:"context"`
}

// metadataOf reads the _metadata of a completion or a chunk; nil if it has none.
func metadataOf(t *testing.T, raw string) *metadata {
	t.Helper()
	var body struct {
		Metadata *metadata `json:"_metadata"`
	}
	if err := json.Unmarshal([]byte(raw), &body); err != nil {
		t.Fatal(err)
	}
	return body.Metadata
}

// complete asks for a whole reply, and returns its text and _metadata.
func complete(t *testing.T, params openai.ChatCompletionNewParams, opts ...option.RequestOption) (string, *metadata, *openai.ChatCompletion) {
	t.Helper()
	client := good()
	got, err := client.Chat.Completions.New(t.Context(), params, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return got.Choices[0].Message.Content, metadataOf(t, got.RawJSON()), got
}

// ask asks one user message.
func ask(t *testing.T, content string, opts ...option.RequestOption) (string, *metadata) {
	t.Helper()
	text, meta, _ := complete(t, says(openai.UserMessage(content)), opts...)
	return text, meta
}

// stream reads a stream to its end, and returns it assembled and its _metadata.
func stream(t *testing.T, params openai.ChatCompletionNewParams, opts ...option.RequestOption) (openai.ChatCompletion, []*metadata) {
	t.Helper()
	client := good()
	events := client.Chat.Completions.NewStreaming(t.Context(), params, opts...)
	defer events.Close()
	var (
		whole openai.ChatCompletionAccumulator
		metas []*metadata
	)
	for events.Next() {
		chunk := events.Current()
		if !whole.AddChunk(chunk) {
			t.Fatalf("a chunk that doesn't fit: %s", chunk.RawJSON())
		}
		if meta := metadataOf(t, chunk.RawJSON()); meta != nil {
			metas = append(metas, meta)
		}
	}
	if err := events.Err(); err != nil {
		t.Fatal(err)
	}
	return whole.ChatCompletion, metas
}

func wantHistory(t *testing.T, meta *metadata, want int) {
	t.Helper()
	if meta == nil || meta.Memory == nil {
		t.Fatal("no _metadata.memory")
	}
	if got := meta.Memory.HistoryMessages; got != want {
		t.Errorf("historyMessages is %d, want %d", got, want)
	}
}

func wantText(t *testing.T, text, want string) {
	t.Helper()
	if !strings.Contains(text, want) {
		t.Errorf("got %q, want %q in it", text, want)
	}
}

// wantError checks that err is the API's error with the status, and returns it.
func wantError(t *testing.T, err error, status int) *openai.Error {
	t.Helper()
	var apiErr *openai.Error
	if !errors.As(err, &apiErr) || apiErr.StatusCode != status {
		t.Fatalf("got %v, want an error with status %d", err, status)
	}
	return apiErr
}
