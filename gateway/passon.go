package gateway

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/backstory-proxy/backstory/gateway/internal/stats"
	"github.com/backstory-proxy/backstory/gateway/internal/upstream"
	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
)

// passOn hands a request that isn't ours to the router, as far as the plan
// allows.
func (ca *chatAPI) passOn(c call) error {
	w, r, router, who := c.w, c.r, c.router, c.who
	if who.onOperator {
		if err := checkOperators(r); err != nil {
			return err
		}
	}
	w.stats.Begin(stats.Router)
	if r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodDelete || r.Method == http.MethodOptions {
		return upstream.Call(router, w, r) // it calls no model
	}
	if err := ca.checkNamedModel(c); err != nil {
		return err
	}
	if who.plan.TokensPerMonth == 0 {
		return upstream.Call(router, w, r)
	}
	if err := w.checkAllowance(&who.plan, w.used); err != nil {
		return err
	}
	r.Header.Del("Accept-Encoding") // Go's transport asks for gzip itself, and unpacks it
	reply := &usageReader{Writer: upstream.Writer{ResponseWriter: w}}
	month := thisMonth()
	defer func() { // also where the reply broke off
		u := reply.scanner.Usage()
		ca.use(r.Context(), who.scope, w.id, store.Used{Month: month, Tokens: int64(u.Prompt) + int64(u.Completion)})
	}()
	return upstream.Call(router, reply, r)
}

// usageReader reads the usage out of a reply that passes by.
type usageReader struct {
	upstream.Writer
	scanner openai.UsageScanner
	decided bool
	reads   bool
}

// WriteHeader decides by the header whether the reply can tell its usage.
func (u *usageReader) WriteHeader(status int) {
	if status >= 200 && !u.decided {
		kind, _, _ := mime.ParseMediaType(u.Header().Get("Content-Type"))
		u.scanner.Events = kind == "text/event-stream"
		json := kind == "application/json" || strings.HasSuffix(kind, "+json")
		u.decided, u.reads = true, status < 300 && (json || u.scanner.Events) && u.Header().Get("Content-Encoding") == ""
	}
	u.Writer.WriteHeader(status)
}

func (u *usageReader) Write(p []byte) (int, error) {
	if !u.decided {
		u.WriteHeader(http.StatusOK)
	}
	if u.reads {
		u.scanner.Write(p)
	}
	return u.Writer.Write(p)
}

// ReadFrom implements io.ReaderFrom. Without it the bytes would go past Write.
func (u *usageReader) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{u}, r)
}

// checkNamedModel refuses a request for a model that the plan doesn't have.
// Where the plan names models, a body that names none is refused too: the
// router would choose one.
func (ca *chatAPI) checkNamedModel(c call) error {
	r, p := c.r, &c.who.plan
	if len(p.Models) == 0 || r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	body, err := c.read(ca.options.MaxBody)
	if err != nil {
		return err
	}
	if len(body) > 0 {
		if err := p.checkModels(namedModels(r.Header.Get("Content-Type"), body)); err != nil {
			return err
		}
	}
	upstream.SetBody(r, body)
	return nil
}

// namedModels is the model that a body of JSON or a form names, empty where it
// names none or is ambiguous, and those that the router may fall back to.
func namedModels(contentType string, body []byte) (model string, others []string) {
	kind, params, _ := mime.ParseMediaType(contentType)
	if kind == "multipart/form-data" {
		return modelOfForm(bytes.NewReader(body), params["boundary"]), nil
	}
	if openai.CheckJSON(body) != nil {
		return "", nil
	}
	n := 0
	gjson.ParseBytes(body).ForEach(func(key, v gjson.Result) bool {
		switch name := key.String(); {
		case name == "model":
			model = v.String()
			n++
		case name == "models":
			for _, other := range v.Array() {
				others = append(others, other.String())
			}
		case strings.EqualFold(name, "model") || strings.EqualFold(name, "models"):
			n += 2 // a router in Go reads it
		}
		return true
	})
	if n != 1 {
		return "", nil
	}
	return model, others
}

func modelOfForm(body io.Reader, boundary string) string {
	parts, model := multipart.NewReader(body, boundary), ""
	for {
		p, err := parts.NextPart()
		if err != nil {
			if err == io.EOF { //nolint:errorlint // as NextPart documents it
				return model
			}
			return ""
		}
		if p.FormName() != "model" {
			continue
		}
		value, err := io.ReadAll(io.LimitReader(p, maxField))
		if err != nil || model != "" {
			return ""
		}
		model = string(value)
	}
}

// Interface guards
var (
	_ http.ResponseWriter = (*usageReader)(nil)
	_ io.ReaderFrom       = (*usageReader)(nil)
)
