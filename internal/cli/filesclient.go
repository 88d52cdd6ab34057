package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/backstory-proxy/backstory/openai"
)

// filesClient speaks the Files API, with a tenant's keys, for the command line.
type filesClient struct {
	base    string // ends in /api/v1
	service string // the service key
	router  string // the router's key; empty: the service key is sent alone
	http    http.Client
}

// apiError is an error that the API answered with.
type apiError struct {
	status  int
	message string
}

func (e *apiError) Error() string { return e.message }

// hopeless reports whether an error will come with every other request, too.
func hopeless(err error) bool {
	var refused *apiError
	var unreachable *net.OpError
	return errors.As(err, &refused) && refused.status == http.StatusUnauthorized ||
		errors.As(err, &unreachable) && unreachable.Op == "dial" || errors.Is(err, context.Canceled)
}

// busy reports whether the service refused a request because there is too much to
// do. A store that fails has a code: that is to be told, and not to be waited for.
func busy(status int, text []byte) bool {
	var told struct {
		Error struct{ Code string } `json:"error"`
	}
	return status == http.StatusServiceUnavailable && json.Unmarshal(text, &told) == nil && told.Error.Code == ""
}

// longestWait is the longest that a rate limit makes a command wait for its next
// request: a longer Retry-After means that an allowance is used up. So long a
// command also waits for a service that is busy.
const longestWait = 2 * time.Minute

// call sends a request and reads the reply into to. Where the rate is exceeded, or
// there is too much to do, it waits as long as Retry-After says. body, if any, is called for each try, and
// returns the length too.
func (c *filesClient) call(ctx context.Context, method, path, contentType string, body func() (io.ReadCloser, int64, error), to any) error {
	for began := time.Now(); ; {
		reply, err := c.send(ctx, method, path, contentType, body)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(reply.Body)
		reply.Body.Close()
		if err != nil {
			return fmt.Errorf("read the reply of %s: %w", c.base, err)
		}
		if reply.StatusCode == http.StatusOK {
			if err := json.Unmarshal(text, to); err != nil {
				return fmt.Errorf("%s answered with something other than the Files API", c.base)
			}
			return nil
		}
		seconds, err := strconv.Atoi(reply.Header.Get("Retry-After"))
		wait := time.Duration(seconds) * time.Second
		again := reply.StatusCode == http.StatusTooManyRequests || busy(reply.StatusCode, text) && time.Since(began) < longestWait
		if !again || err != nil || wait > longestWait {
			return c.refused(reply.StatusCode, text)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

func (c *filesClient) send(ctx context.Context, method, path, contentType string, body func() (io.ReadCloser, int64, error)) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, nil)
	if err != nil {
		return nil, err
	}
	if body != nil {
		if r.Body, r.ContentLength, err = body(); err != nil {
			return nil, err
		}
		r.Header.Set("Content-Type", contentType)
		// What is refused for its size or the rate isn't sent first.
		r.Header.Set("Expect", "100-continue")
	}
	if c.router == "" {
		r.Header.Set("Authorization", "Bearer "+c.service)
	} else {
		r.Header.Set("Authorization", "Bearer "+c.router)
		r.Header.Set("serviceKey", c.service)
	}
	return c.http.Do(r)
}

// refused is what the API said was wrong.
func (c *filesClient) refused(status int, text []byte) error {
	var told struct {
		Error struct{ Message string } `json:"error"`
	}
	_ = json.Unmarshal(text, &told)
	if told.Error.Message == "" {
		return &apiError{status, fmt.Sprintf("%s answered with status %d", c.base, status)}
	}
	if status == http.StatusUnauthorized && c.router == "" {
		told.Error.Message += " (ROUTER_API_KEY is not set, and the service key was sent alone. Set it to the model router's key; the demo router takes any.)"
	}
	return &apiError{status, told.Error.Message}
}

func (c *filesClient) post(ctx context.Context, path string, in, to any) error {
	text, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return c.call(ctx, http.MethodPost, path, "application/json", func() (io.ReadCloser, int64, error) {
		return io.NopCloser(bytes.NewReader(text)), int64(len(text)), nil
	}, to)
}

// list returns all files, oldest first.
func (c *filesClient) list(ctx context.Context) (all []openai.File, err error) {
	query := url.Values{"order": {"asc"}}
	for {
		var page openai.List[openai.File]
		if err := c.call(ctx, http.MethodGet, "/files?"+query.Encode(), "", nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Data...)
		if !page.HasMore || page.LastID == nil {
			return all, nil
		}
		query.Set("after", *page.LastID)
	}
}

// It is asked less and less often whether a large file is indexed: each time
// counts as a request.
const (
	firstPoll   = 250 * time.Millisecond
	longestPoll = 5 * time.Second
)

// add uploads a file, and waits until it is searchable.
func (c *filesClient) add(ctx context.Context, path string) (f openai.File, err error) {
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	_ = w.WriteField("purpose", "user_data")
	_, _ = w.CreateFormFile("file", filepath.Base(path))
	ahead := form.Len()
	_ = w.Close()
	err = c.call(ctx, http.MethodPost, "/files", w.FormDataContentType(), func() (io.ReadCloser, int64, error) {
		file, err := os.Open(path)
		if err != nil {
			return nil, 0, err
		}
		info, err := file.Stat()
		if err != nil {
			file.Close()
			return nil, 0, err
		}
		body := io.MultiReader(bytes.NewReader(form.Bytes()[:ahead]), io.LimitReader(file, info.Size()), bytes.NewReader(form.Bytes()[ahead:]))
		return struct {
			io.Reader
			io.Closer
		}{body, file}, int64(form.Len()) + info.Size(), nil
	}, &f)
	for pause := firstPoll; err == nil && f.Status == "uploaded"; pause = min(2*pause, longestPoll) {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
			err = c.call(ctx, http.MethodGet, "/files/"+url.PathEscape(f.ID), "", nil, &f)
		case <-ctx.Done():
			timer.Stop()
			err = ctx.Err()
		}
	}
	if err == nil && f.Status == "error" {
		err = errors.New(strings.TrimSpace("it could not be indexed. " + f.StatusDetails))
	}
	return f, err
}
