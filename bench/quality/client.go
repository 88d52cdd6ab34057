package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/sync/errgroup"
)

// model is the demo router's. Its tokens are counted by o200k_base.
const model = "demo/echo"

// client speaks to Backstory as an app does.
type client struct {
	root   string
	secret string // what the tenants' keys begin with
	http   *http.Client
}

func newClient(root, secret string) *client {
	return &client{root: root, secret: secret, http: &http.Client{
		Timeout:   2 * time.Minute,
		Transport: &http.Transport{MaxIdleConnsPerHost: 2 * workers},
	}}
}

// key is the service key of a tenant.
func (c *client) key(tenant string) string { return c.secret + "-" + tenant }

// statusError is a reply other than 2xx.
type statusError struct {
	status  int
	message string
}

func (e *statusError) Error() string { return fmt.Sprintf("%d: %s", e.status, e.message) }

// do sends a request and reads its reply, which out is unmarshalled from.
func (c *client) do(ctx context.Context, tenant, method, path, contentType string, body []byte, out any) error {
	r, err := http.NewRequestWithContext(ctx, method, c.root+"/api/v1"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("serviceKey", c.key(tenant))
	r.Header.Set("Authorization", "Bearer sk-demo")
	r.Header.Set("Content-Type", contentType)
	res, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	reply, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		var e struct {
			Error struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		_ = json.Unmarshal(reply, &e) // what isn't of our shape has no message
		return &statusError{res.StatusCode, e.Error.Message}
	}
	return json.Unmarshal(reply, out)
}

func (c *client) post(ctx context.Context, tenant, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return c.do(ctx, tenant, http.MethodPost, path, "application/json", body, out)
}

// ready reports whether the server and its store answer.
func (c *client) ready(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.root+"/readyz", nil)
	if err != nil {
		return err
	}
	res, err := c.http.Do(r)
	if err != nil {
		return err
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("/readyz answers %s", res.Status)
	}
	return nil
}

// said is a chat message as it is imported, or as it would go upstream.
type said struct {
	Role    string `json:"role"`
	Name    string `json:"name,omitempty"`
	Content string `json:"content"`
	Created int64  `json:"created_at,omitempty"` // unix seconds; of imported ones
}

// append puts messages at the end of a session.
func (c *client) append(ctx context.Context, tenant, session string, messages []said) error {
	var out json.RawMessage
	return c.post(ctx, tenant, "/sessions/"+url.PathEscape(session)+"/messages", map[string]any{"messages": messages}, &out)
}

// preview is the prompt that a chat request would be sent with, and its parts.
type preview struct {
	Messages []said `json:"messages"`
	Parts    []struct {
		Kind   string `json:"kind"`
		Tokens int    `json:"tokens"`
	} `json:"parts"`
}

// preview asks for the context of a request. Without a session, files are
// searched; with one they aren't.
func (c *client) preview(ctx context.Context, tenant, session string, messages ...said) (p preview, err error) {
	in := map[string]any{"model": model, "messages": messages}
	if session != "" {
		in["sessionId"], in["useRAG"] = session, false
	}
	return p, c.post(ctx, tenant, "/chat/completions/preview", in, &p)
}

// file is a file object.
type file struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	Reason string `json:"status_details"`
}

// upload takes a file in and waits until it is searchable.
func (c *client) upload(ctx context.Context, tenant, name string, content []byte) (f file, err error) {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	if err := form.WriteField("purpose", "assistants"); err != nil {
		return f, err
	}
	part, err := form.CreateFormFile("file", name)
	if err != nil {
		return f, err
	}
	_, _ = part.Write(content) // into memory
	form.Close()
	if err := c.do(ctx, tenant, http.MethodPost, "/files", form.FormDataContentType(), body.Bytes(), &f); err != nil {
		return f, err
	}
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for f.Status == "uploaded" {
		select {
		case <-again.C:
		case <-ctx.Done():
			return f, ctx.Err()
		}
		if err := c.do(ctx, tenant, http.MethodGet, "/files/"+f.ID, "", nil, &f); err != nil {
			return f, err
		}
	}
	if f.Status != "processed" {
		return f, &statusError{http.StatusUnprocessableEntity, f.Reason}
	}
	return f, nil
}

// hit is a chunk that a search found.
type hit struct {
	FileID  string `json:"file_id"`
	Chunk   int    `json:"chunk"`
	Section string `json:"section"`
	Content []struct {
		Text string `json:"text"`
	} `json:"content"`
}

// mostHits is the largest limit of a search.
const mostHits = 50

func (c *client) search(ctx context.Context, tenant, query string) ([]hit, error) {
	var page struct {
		Data []hit `json:"data"`
	}
	err := c.post(ctx, tenant, "/files/search", map[string]any{"query": query, "limit": mostHits}, &page)
	return page.Data, err
}

// workers is how many requests are under way at once.
const workers = 2

// each calls f for 0 to n-1, some at once. The first error ends it.
func each(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for i := range n {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error { return f(ctx, i) })
	}
	return group.Wait()
}
