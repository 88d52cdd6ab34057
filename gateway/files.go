package gateway

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"github.com/backstory-proxy/backstory/gateway/internal/upstream"
	"github.com/backstory-proxy/backstory/internal/respond"
	"github.com/backstory-proxy/backstory/knowledge"
	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
)

// filesAPI is the OpenAI Files API, and a search beside it.
type filesAPI struct {
	options   *Options
	shared    *Shared
	knowledge *knowledge.Service
	logger    *zap.Logger
}

// file describes a file.
func (fa *filesAPI) describe(c call) error {
	f, err := fa.shared.File(c.r.Context(), c.who.scope, c.id())
	if err != nil {
		return noSuchFile(err, c.id())
	}
	return respond.JSON(c.w, fileObject(f))
}

func (fa *filesAPI) delete(c call) error {
	if err := fa.shared.DeleteFile(c.r.Context(), c.who.scope, c.id()); err != nil {
		return noSuchFile(err, c.id())
	}
	return respond.JSON(c.w, openai.Deleted{ID: c.id(), Object: "file", Deleted: true})
}

// noSuchFile names the file where it wasn't found; other errors are the
// store's.
func noSuchFile(err error, id string) error {
	if errors.Is(err, store.ErrNotFound) {
		return &openai.Error{
			Status: http.StatusNotFound, Type: openai.TypeInvalidRequest, Param: "id",
			Message: "No such File object: " + id,
		}
	}
	return &unavailable{err}
}

func fileObject(f store.File) openai.File {
	return openai.File{
		ID: f.ID, Object: "file", Bytes: f.Bytes, CreatedAt: f.Created.Unix(), Filename: f.Name,
		Purpose: f.Purpose, Status: string(f.Status), StatusDetails: f.Reason,
	}
}

const maxListed = 10_000 // OpenAI's bound and default

func (fa *filesAPI) list(c call) error {
	query := c.r.URL.Query()
	limit, err := readLimit(query, maxListed, maxListed)
	if err != nil {
		return err
	}
	order, err := readOrder(query)
	if err != nil {
		return err
	}
	found, err := fa.shared.ListFiles(c.r.Context(), c.who.scope, store.FileQuery{
		Purpose: query.Get("purpose"), After: query.Get("after"), Limit: limit + 1, Order: order,
	})
	if errors.Is(err, store.ErrNotFound) {
		return openai.Invalid("after", "There is no file with the id given in 'after'.")
	}
	if err != nil {
		return &unavailable{err}
	}
	objects := make([]openai.File, len(found))
	for i, f := range found {
		objects[i] = fileObject(f)
	}
	return respond.JSON(c.w, openai.NewList(objects, limit, func(f openai.File) string { return f.ID }))
}

// readLimit reads the page size of a listing.
func readLimit(query url.Values, most, unset int) (int, error) {
	text := query.Get("limit")
	if text == "" {
		return unset, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, openai.Invalid("limit", "Invalid value for 'limit': expected an integer from 1 to %d.", most)
	}
	return n, nil
}

func readOrder(query url.Values) (store.Order, error) {
	switch query.Get("order") {
	case "", "desc":
		return store.Descending, nil
	case "asc":
		return store.Ascending, nil
	}
	return false, openai.Invalid("order", "Invalid value for 'order': expected 'asc' or 'desc'.")
}

// content answers with the original, byte for byte. It is shown by no browser:
// what a tenant uploaded must not run as a page of this site.
func (fa *filesAPI) content(c call) error {
	f, err := fa.shared.File(c.r.Context(), c.who.scope, c.id())
	if err != nil {
		return noSuchFile(err, c.id())
	}
	content, err := fa.shared.Content(c.r.Context(), c.who.scope, c.id())
	if err != nil {
		return noSuchFile(err, c.id())
	}
	defer content.Close()
	header := c.w.Header()
	header.Set("Content-Type", "application/octet-stream")
	header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": f.Name}))
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Length", strconv.FormatInt(f.Bytes, 10))
	c.w.WriteHeader(http.StatusOK)
	from := &contentReader{from: content}
	if _, _ = io.Copy(c.w, from); from.err == nil { // the client may be gone: that is nobody's error
		return nil
	}
	if c.r.Context().Err() == nil && !errors.Is(from.err, store.ErrNotFound) {
		fa.logger.Error("a download broke off", zap.String("file", f.ID), zap.Error(from.err))
	}
	panic(http.ErrAbortHandler) // or what there is would pass for the whole
}

// contentReader remembers that reading failed, and not writing.
type contentReader struct {
	from io.Reader
	err  error
}

func (r *contentReader) Read(p []byte) (n int, err error) {
	n, err = r.from.Read(p)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

const (
	maxFound     = 50 // OpenAI's bound for a vector store search, and
	defaultFound = 10 // its default
	maxQueryBody = 64 << 10
)

// searchFiles shows what retrieval finds.
func (fa *filesAPI) search(c call) error {
	asked, err := c.read(maxQueryBody)
	if err != nil {
		return err
	}
	query, limit, err := readSearch(asked)
	if err != nil {
		return err
	}
	result, err := fa.knowledge.Search(c.r.Context(), upstream.New(c.r, c.router), c.who.scope, query, limit)
	if err != nil {
		return &unavailable{err}
	}
	page := openai.SearchResults{
		Object: "vector_store.search_results.page", SearchQuery: query,
		Data: make([]openai.SearchResult, len(result.Hits)), Degraded: result.Degraded,
	}
	for i, h := range result.Hits {
		page.Data[i] = openai.SearchResult{
			FileID: h.FileID, Filename: h.Filename, Score: h.Score, Attributes: map[string]any{},
			Content: []openai.Text{{Type: "text", Text: h.Chunk.Text}},
			Chunk:   h.Chunk.N, Section: h.Chunk.Section, Page: h.Chunk.Page,
		}
	}
	return respond.JSON(c.w, page)
}

func readSearch(body []byte) (query string, limit int, err error) {
	if err := openai.CheckJSON(body); err != nil {
		return "", 0, err
	}
	if !gjson.ParseBytes(body).IsObject() {
		return "", 0, openai.Invalid("", "The request body must be a JSON object.")
	}
	q := gjson.GetBytes(body, "query")
	if q.Type != gjson.String || strings.TrimSpace(q.Str) == "" {
		return "", 0, openai.Invalid("query", "Missing or invalid 'query': expected a non-empty string.")
	}
	limit = defaultFound
	if l := gjson.GetBytes(body, "limit"); l.Type != gjson.Null {
		if l.Type != gjson.Number || l.Num != float64(int(l.Num)) || l.Num < 1 || l.Num > maxFound {
			return "", 0, openai.Invalid("limit", "Invalid value for 'limit': expected an integer from 1 to %d.", maxFound)
		}
		limit = int(l.Num)
	}
	return q.Str, limit, nil
}
