package gateway

import (
	"bytes"
	"context"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/backstory-proxy/backstory/gateway/internal/stats"
	"github.com/backstory-proxy/backstory/gateway/internal/upstream"
	"github.com/backstory-proxy/backstory/openai"
)

// maxHeld bounds a JSON reply that is held until its end. A larger one passes
// as it is, and can't be saved.
const maxHeld = 32 << 20

// forward calls the router and reads the reply on its way to the client: what was
// said is committed before the client sees the end.
func (ca *chatAPI) forward(w *replyWriter, r *http.Request, router http.Handler, x *exchange) (err error) {
	// Go's transport then asks for gzip itself, and unpacks it: the reply has
	// to be read.
	r.Header.Del("Accept-Encoding")
	reply := &tee{
		Writer:   upstream.Writer{ResponseWriter: w},
		exchange: x,
		meta:     x.prompt.meta,
		ctx:      r.Context(),
	}
	ca.shared.replies.Store(reply, nil)
	defer ca.shared.replies.Delete(reply)
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		reply.abandon()
		if reply.mode == hold && p == http.ErrAbortHandler { //nolint:errorlint // compared as net/http does
			// Nothing was written yet: better an error than a torn connection.
			err = openai.StatusError(http.StatusBadGateway, "The model router's reply broke off.")
			return
		}
		panic(p)
	}()
	w.stats.Begin(stats.Router)
	if err := upstream.Call(router, reply, r); err != nil {
		reply.abandon()
		return err
	}
	return reply.finish()
}

// tee is the reply to a chat request, read as it is written.
type tee struct {
	upstream.Writer
	exchange *exchange
	meta     *openai.Metadata // to be added; nil: none
	ctx      context.Context  // of the request

	// mu is held while the reply is read: the process may exit meanwhile.
	mu     sync.Mutex
	mode   mode
	held   bytes.Buffer // a JSON reply
	stream openai.Stream
	broken bool // the client takes no more
	done   bool // the reply was seen to its end, and saved if it had to be
}

// mode is what is done with a reply.
type mode int

const (
	undecided mode = iota
	pass           // nothing: it isn't a chat completion
	hold           // a JSON object: kept until it is whole
	events         // an event stream: forwarded as it comes
)

// WriteHeader decides by the header what is done with the reply.
func (t *tee) WriteHeader(status int) {
	if status < 200 { // an interim reply, from another goroutine: touch nothing
		t.Writer.WriteHeader(status)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.decide(status)
}

// decide does the work of WriteHeader, with mu held.
func (t *tee) decide(status int) {
	if t.mode != undecided {
		return
	}
	t.exchange.stats.Answered()
	t.mode = t.modeFor(status)
	switch t.mode {
	case pass:
		t.unread(status)
	case hold:
		return // the length isn't known yet
	case events:
		t.Header().Del("Content-Length")
		t.stream.Forward = func(p []byte) error {
			_, err := t.Writer.Write(p)
			t.broken = t.broken || err != nil
			return err
		}
		t.stream.End = func(r *openai.Reply) []byte {
			t.flush() // the client need not wait for the last words
			return t.end(r)
		}
		t.stream.HideUsage = t.exchange.prompt.edit.IncludeUsage
		if t.meta != nil {
			t.stream.Metadata = t.meta.JSON()
		}
	}
	t.Writer.WriteHeader(status)
}

// unread tells of a reply that should be saved and can't be read, such as one
// that the router compressed without being asked. There is no place for
// metadata in it: a header says so.
func (t *tee) unread(status int) {
	if status >= 300 || !t.exchange.req.saves() {
		return
	}
	header := t.Header()
	header.Set("X-Backstory-Saved", "false")
	t.exchange.api.logger.Error("the exchange was not saved: the reply is no chat completion that can be read",
		zap.String("request_id", t.exchange.req.id), zap.Int("status", status),
		zap.String("content_type", header.Get("Content-Type")), zap.String("content_encoding", header.Get("Content-Encoding")))
}

func (t *tee) modeFor(status int) mode {
	header := t.Header()
	if status != http.StatusOK || header.Get("Content-Encoding") != "" {
		return pass
	}
	switch kind, _, _ := mime.ParseMediaType(header.Get("Content-Type")); {
	case kind == "text/event-stream":
		return events
	case kind == "application/json" || strings.HasSuffix(kind, "+json"):
		return hold
	}
	return pass
}

// Write takes the next bytes of the reply. It reports all of them as written,
// whatever was added or held back: the proxy would give up otherwise.
func (t *tee) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.decide(http.StatusOK)
	switch t.mode {
	case events:
		if err := t.stream.Write(p); err != nil {
			return 0, err
		}
		return len(p), nil
	case hold:
		if t.held.Len()+len(p) <= maxHeld {
			return t.held.Write(p)
		}
		if err := t.release(); err != nil {
			return 0, err
		}
	}
	return t.Writer.Write(p)
}

// release gives up holding the reply. It can't be saved; its metadata says so,
// as the first member, since the end won't be seen.
func (t *tee) release() error {
	t.mode, t.done = pass, true
	if !t.exchange.commit(t.ctx, &openai.Reply{Truncated: true}, false) {
		t.meta.Memory.Saved = new(bool)
	}
	t.Header().Del("Content-Length")
	t.Writer.WriteHeader(http.StatusOK)
	start := t.held.Bytes()
	if t.meta != nil {
		start = openai.PrependMetadata(start, t.meta.JSON())
	}
	_, err := t.Writer.Write(start)
	t.held = bytes.Buffer{}
	return err
}

// ReadFrom implements io.ReaderFrom. Without it the bytes would go past Write.
func (t *tee) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{t}, r)
}

// FlushError sends what was written to the client. The proxy calls it while a
// JSON reply is still held, when there is nothing to send.
func (t *tee) FlushError() error {
	if t.mode == hold || t.mode == undecided {
		return nil
	}
	return http.NewResponseController(&t.Writer).Flush()
}

func (t *tee) flush() { _ = t.FlushError() } // a client that left shows at the next Write

// end saves a whole reply, and returns what a stream says of it.
func (t *tee) end(r *openai.Reply) []byte {
	t.done = true
	t.exchange.complete(r)
	if t.exchange.commit(t.ctx, r, t.left()) {
		return nil
	}
	return []byte(": backstory not-saved\n\n")
}

// left reports whether the client is gone.
func (t *tee) left() bool { return t.broken || t.ctx.Err() != nil }

// finish is called when the router's reply ended as it should.
func (t *tee) finish() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch t.mode {
	case hold:
		return t.finishJSON()
	case events:
		return t.finishStream()
	}
	t.giveUp()
	return nil
}

func (t *tee) finishJSON() error {
	body := t.held.Bytes()
	if r := openai.ParseReply(body); r.Message != nil && !r.Failed {
		t.done = true
		t.exchange.complete(r)
		if !t.exchange.commit(t.ctx, r, t.left()) {
			t.meta.Memory.Saved = new(bool)
		}
		if t.meta != nil {
			if with := openai.AddMetadata(body, t.meta.JSON()); with != nil {
				body = with
			}
		}
	} else {
		t.exchange.use(t.ctx, &openai.Reply{Usage: r.Usage})
		if !r.Failed {
			t.unread(http.StatusOK)
		}
	}
	t.Header().Set("Content-Length", strconv.Itoa(len(body)))
	t.Writer.WriteHeader(http.StatusOK)
	_, err := t.Writer.Write(body)
	if err != nil && t.ctx.Err() == nil {
		return err
	}
	return nil
}

// finishStream ends a stream that may have had no [DONE].
func (t *tee) finishStream() error {
	err := t.stream.Close()
	if t.left() {
		t.giveUp()
		return nil
	}
	if err != nil || t.done {
		return err
	}
	_, err = t.Writer.Write(t.end(t.stream.Reply()))
	return err
}

// abandon ends a reply that broke off. If it was the client who left, what was
// delivered is saved; what the router broke off is not.
func (t *tee) abandon() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.giveUp()
}

// cutOff ends a reply that the process can't wait for: it exits. What was
// delivered is saved. A write to a client that takes nothing is given up.
func (t *tee) cutOff() {
	_ = http.NewResponseController(&t.Writer).SetWriteDeadline(time.Now())
	t.mu.Lock()
	defer t.mu.Unlock()
	t.broken = true
	t.giveUp()
}

func (t *tee) giveUp() {
	if t.done {
		return
	}
	r := new(openai.Reply)
	if t.mode == events {
		r = t.stream.Reply()
	}
	t.done = true
	if !t.left() { // the router broke it off
		t.exchange.use(t.ctx, r)
		return
	}
	t.exchange.commit(t.ctx, r, true)
}

// Interface guards
var (
	_ http.ResponseWriter             = (*tee)(nil)
	_ io.ReaderFrom                   = (*tee)(nil)
	_ interface{ FlushError() error } = (*tee)(nil)
)
