package clients_test

import (
	"testing"

	"github.com/openai/openai-go/v3"
)

func TestModelsOfTheRouter(t *testing.T) {
	client := good()
	found := false
	list := client.Models.ListAutoPaging(t.Context())
	for list.Next() {
		found = found || list.Current().ID == "demo/echo"
	}
	if list.Err() != nil || !found {
		t.Errorf("demo/echo isn't listed: %v", list.Err())
	}
}

func TestEmbeddingsOfTheRouter(t *testing.T) {
	client := good()
	got, err := client.Embeddings.New(t.Context(), openai.EmbeddingNewParams{
		Model:      "demo/embedding",
		Input:      openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"the refund window", "a window for refunds"}},
		Dimensions: openai.Int(64),
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Data) != 2 || len(got.Data[1].Embedding) != 64 || got.Data[1].Index != 1 {
		t.Errorf("got %s", got.RawJSON())
	}
}
