package demo

import (
	"net/http"
	"strings"
)

// listed are the models that GET /models shows.
var listed = []model{
	{ID: "demo/echo", Context: 8192},
	{ID: "demo/small", Context: 4096},
	{ID: "demo/large", Context: 131072},
	{ID: embeddingModel, Context: 8192},
}

const (
	embeddingModel = "demo/embedding"
	defaultContext = 131072
	modelsCreated  = 1767225600 // 2026-01-01
)

// model is a model object as the OpenAI format has it, with the context length
// that OpenRouter adds.
type model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
	Context int    `json:"context_length"`
}

func (m model) object() model {
	m.Object, m.Created, m.OwnedBy = "model", modelsCreated, "demo"
	return m
}

// contextLength returns the context of a model, listed or not.
func contextLength(id string) int {
	for _, m := range listed {
		if m.ID == id {
			return m.Context
		}
	}
	return defaultContext
}

func (rt *Router) serveModels(w http.ResponseWriter, _ *http.Request) *apiError {
	list := struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{Object: "list"}
	for _, m := range listed {
		list.Data = append(list.Data, m.object())
	}
	writeJSON(w, http.StatusOK, list)
	return nil
}

func (rt *Router) serveModel(w http.ResponseWriter, r *http.Request) *apiError {
	const marker = "/models/"
	id := r.URL.Path[strings.LastIndex(r.URL.Path, marker)+len(marker):]
	for _, m := range listed {
		if m.ID == id {
			writeJSON(w, http.StatusOK, m.object())
			return nil
		}
	}
	return errModel(id)
}
