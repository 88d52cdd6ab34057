package clients_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

const returns = `# Returns

## Jackets

A jacket can be returned within 45 days of delivery, if it is unworn.

## Shoes

Shoes can be exchanged in every shop. They are never refunded.
`

// upload uploads a file and waits until it is processed. The test's end deletes
// it.
func upload(t *testing.T, client openai.Client, name, content string) *openai.FileObject {
	t.Helper()
	file, err := client.Files.New(t.Context(), openai.FileNewParams{
		File:    openai.File(strings.NewReader(content), name, "text/markdown"),
		Purpose: openai.FilePurposeAssistants,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// It may be gone already; t.Context is over here.
		_, _ = client.Files.Delete(context.Background(), file.ID)
	})
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for tries := 0; file.Status == openai.FileObjectStatusUploaded && tries < 300; tries++ {
		<-tick.C
		if file, err = client.Files.Get(t.Context(), file.ID); err != nil {
			t.Fatal(err)
		}
	}
	if file.Status != openai.FileObjectStatusProcessed {
		t.Fatalf("status is %q: %s", file.Status, file.RawJSON())
	}
	return file
}

func TestFileFromUploadToDeletion(t *testing.T) {
	client := good()
	file := upload(t, client, "returns.md", returns)
	if file.Filename != "returns.md" || file.Bytes != int64(len(returns)) || file.Purpose != openai.FileObjectPurposeAssistants {
		t.Errorf("uploaded: %s", file.RawJSON())
	}

	listed := false
	list := client.Files.ListAutoPaging(t.Context(), openai.FileListParams{})
	for list.Next() {
		listed = listed || list.Current().ID == file.ID
	}
	if list.Err() != nil || !listed {
		t.Errorf("not listed: %v", list.Err())
	}

	resp, err := client.Files.Content(t.Context(), file.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if content, err := io.ReadAll(resp.Body); err != nil || string(content) != returns {
		t.Errorf("read back %q, %v", content, err)
	}

	if deleted, err := client.Files.Delete(t.Context(), file.ID); err != nil || !deleted.Deleted {
		t.Fatalf("deleted: %v, %v", deleted, err)
	}
	_, err = client.Files.Get(t.Context(), file.ID)
	wantError(t, err, 404)
	if text, meta := ask(t, "Within how many days can a jacket be returned?"); meta != nil || strings.Contains(text, "45 days") {
		t.Errorf("answered from a deleted file: %q", text)
	}
}

func TestAnswersFromAFile(t *testing.T) {
	const question = "Within how many days can a jacket be returned?"
	file := upload(t, good(), "returns.md", returns)
	wantSource := func(t *testing.T, meta *metadata, query string) {
		t.Helper()
		if meta == nil || !meta.RAG.Enabled || meta.RAG.Query != query || len(meta.RAG.Sources) == 0 {
			t.Fatalf("_metadata is %+v", meta)
		}
		if s := meta.RAG.Sources[0]; s.FileID != file.ID || s.Filename != "returns.md" {
			t.Errorf("the first source is %+v", s)
		}
	}

	t.Run("with their source", func(t *testing.T) {
		text, meta := ask(t, question)
		wantText(t, text, "From returns.md: “A jacket can be returned within 45 days")
		wantSource(t, meta, question)
	})
	t.Run("in a stream", func(t *testing.T) {
		got, metas := stream(t, says(openai.UserMessage(question)))
		wantText(t, got.Choices[0].Message.Content, "From returns.md: “A jacket can be returned within 45 days")
		if len(metas) != 1 {
			t.Fatalf("%d chunks have _metadata, want 1", len(metas))
		}
		wantSource(t, metas[0], question)
	})
	t.Run("not with useRAG false", func(t *testing.T) {
		if text, meta := ask(t, question, option.WithJSONSet("useRAG", false)); meta != nil || strings.Contains(text, "45 days") {
			t.Errorf("got %q, %+v", text, meta)
		}
	})
	t.Run("found by the ragQuery", func(t *testing.T) {
		text, meta := ask(t, "Please help.", option.WithJSONSet("ragQuery", "exchange of shoes"))
		wantText(t, text, " passage")
		wantSource(t, meta, "exchange of shoes")
	})
}

func TestFileWithoutTextIsRefused(t *testing.T) {
	client := good()
	_, err := client.Files.New(t.Context(), openai.FileNewParams{
		File:    openai.File(strings.NewReader("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00"), "dot.png", "image/png"),
		Purpose: openai.FilePurposeAssistants,
	})
	if apiErr := wantError(t, err, 415); apiErr.Message == "" {
		t.Error("the message is empty")
	}
}
