package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"unicode/utf8"

	"go.uber.org/zap"

	"github.com/backstory-proxy/backstory/internal/respond"
	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
)

// SessionObject is a session as the API shows it.
type SessionObject struct {
	ID        string `json:"id"`
	Object    string `json:"object"` // "session"
	CreatedAt int64  `json:"created_at"`
	UpdatedAt int64  `json:"updated_at"`
	ExpiresAt *int64 `json:"expires_at"` // null: never
	Messages  int64  `json:"messages"`
	Tokens    int64  `json:"tokens"`
}

// sessionMessage is a message of a session: as it was said, with an id and a
// time.
type sessionMessage struct {
	ID      string
	Created int64 // unix seconds
	Said    []byte
}

// write writes the message with our members ahead of its own, as the OpenAI API
// does with the messages of a stored completion. Where a message has members of
// these names itself, ours stand.
func (m *sessionMessage) write(to *bytes.Buffer) error {
	ours := fmt.Sprintf(`"id":%q,"object":%q,"created_at":%d`, m.ID, openai.MessageObject, m.Created)
	said := openai.Lead(m.Said, ours, "id", "object", "created_at")
	if !utf8.Valid(said) { // a message is kept as it came, but a list that isn't UTF-8 can't be read
		said = bytes.ToValidUTF8(said, []byte("\ufffd"))
	}
	return json.Compact(to, said)
}

const (
	maxPage     = 100
	DefaultPage = 20
)

// SessionsAPI is the API of a caller's own sessions. Its exported methods are for
// the admin API, which names the tenant itself; their errors are *openai.Error, or
// the store's.
type SessionsAPI struct {
	options *Options
	gate    *gate
	shared  *Shared
	logger  *zap.Logger
}

func (sa *SessionsAPI) list(c call) error { return sa.List(c.w, c.r, c.who.scope) }

func (sa *SessionsAPI) describe(c call) error { return sa.read(c, sa.Describe) }

func (sa *SessionsAPI) messages(c call) error { return sa.read(c, sa.Messages) }

func (sa *SessionsAPI) delete(c call) error { return sa.Delete(c.w, c.r, c.who.scope, c.id()) }

// read answers with what is stored of a session, with what the journal still had
// of it.
func (sa *SessionsAPI) read(c call, answer func(http.ResponseWriter, *http.Request, store.Scope, string) error) error {
	if err := sa.shared.catchUp(c.r.Context(), c.who.scope, c.id()); err != nil {
		return err
	}
	return answer(c.w, c.r, c.who.scope, c.id())
}

func noSuchSession(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return &openai.Error{
			Status: http.StatusNotFound, Type: openai.TypeInvalidRequest, Param: "id",
			Message: "There is no such session.",
		}
	}
	return &unavailable{err}
}

func sessionObject(s store.Session) SessionObject {
	o := SessionObject{
		ID: s.ID, Object: "session", CreatedAt: s.Created.Unix(), UpdatedAt: s.Updated.Unix(),
		Messages: s.Messages, Tokens: s.Tokens,
	}
	if s.TTL > 0 {
		expires := s.Updated.Add(s.TTL).Unix()
		o.ExpiresAt = &expires
	}
	return o
}

// Describe describes a session.
func (sa *SessionsAPI) Describe(w http.ResponseWriter, r *http.Request, scope store.Scope, id string) error {
	s, err := sa.shared.Session(r.Context(), scope, id)
	if err != nil {
		return noSuchSession(err)
	}
	return respond.JSON(w, sessionObject(s))
}

// Delete deletes a session.
func (sa *SessionsAPI) Delete(w http.ResponseWriter, r *http.Request, scope store.Scope, id string) error {
	if err := sa.shared.DeleteSession(r.Context(), scope, id); err != nil {
		return noSuchSession(err)
	}
	return respond.JSON(w, openai.Deleted{ID: id, Object: "session", Deleted: true})
}

// List lists a tenant's sessions, page by page.
func (sa *SessionsAPI) List(w http.ResponseWriter, r *http.Request, scope store.Scope) error {
	query := r.URL.Query()
	limit, err := readLimit(query, maxPage, DefaultPage)
	if err != nil {
		return err
	}
	found, err := sa.shared.ListSessions(r.Context(), scope, query.Get("after"), limit+1)
	if errors.Is(err, store.ErrNotFound) {
		return openai.Invalid("after", "There is no session with the id given in 'after'.")
	}
	if err != nil {
		return &unavailable{err}
	}
	objects := make([]SessionObject, len(found))
	for i, s := range found {
		objects[i] = sessionObject(s)
	}
	return respond.JSON(w, openai.NewList(objects, limit, func(s SessionObject) string { return s.ID }))
}

// Messages lists the messages of a session, page by page; all of them, as JSON
// Lines, where the request accepts those.
func (sa *SessionsAPI) Messages(w http.ResponseWriter, r *http.Request, scope store.Scope, id string) error {
	if wantsLines(r) {
		return sa.exportMessages(w, r, scope, id)
	}
	return sa.listMessages(w, r, scope, id)
}

// listMessages lists the messages of a session. Message ids are made of the
// exchange's place in the session and the message's place in the exchange.
func (sa *SessionsAPI) listMessages(w http.ResponseWriter, r *http.Request, scope store.Scope, id string) error {
	query := r.URL.Query()
	limit, err := readLimit(query, maxPage, DefaultPage)
	if err != nil {
		return err
	}
	order, err := readOrder(query)
	if err != nil {
		return err
	}
	var seq int64
	var at int
	after := query.Get("after")
	if after != "" {
		_, err := fmt.Sscanf(after, "msg_%d_%d", &seq, &at)
		if err != nil || seq < 1 || messageID(seq, at) != after {
			return openai.Invalid("after", "Invalid value for 'after': expected the id of a message.")
		}
	}
	// The exchange that after stands in is read again, for its other messages.
	from := seq
	if seq > 0 && order == store.Ascending {
		from--
	} else if seq > 0 {
		from++
	}
	messages, more, err := sa.readPage(r.Context(), scope, id, after, from, limit, order)
	if err != nil {
		return noSuchSession(err)
	}
	return respondMessages(w, messages, limit, more)
}

// readPage reads the messages that follow the one named after, from the exchange
// that follows the one with Seq from: more of them than limit, if there are. Where
// exchanges are large, the page is shorter, and more says whether others follow.
func (sa *SessionsAPI) readPage(ctx context.Context, scope store.Scope, id, after string, from int64, limit int, order store.Order) (messages []sessionMessage, more bool, err error) {
	for {
		// An exchange holds at least one message.
		found, err := sa.shared.Exchanges(ctx, scope, id, from, limit+2, order)
		if err != nil {
			return nil, false, err
		}
		messages = messageObjects(found, order)
		if i := slices.IndexFunc(messages, func(m sessionMessage) bool { return m.ID == after }); i >= 0 {
			messages = messages[i+1:]
		}
		if len(messages) > limit || !store.Full(found, store.PageBytes) {
			return messages, false, nil
		}
		from = found[len(found)-1].Seq
		if len(messages) > 0 {
			next, err := sa.shared.Exchanges(ctx, scope, id, from, 1, order)
			return messages, len(next) > 0, err
		}
	}
}

// respondMessages answers with a page of messages. They are written one by one:
// each may be large.
func respondMessages(w http.ResponseWriter, messages []sessionMessage, limit int, more bool) error {
	page := openai.NewList(messages, limit, func(m sessionMessage) string { return m.ID })
	page.HasMore = page.HasMore || more
	messages, page.Data = page.Data, []sessionMessage{}
	var around bytes.Buffer
	e := json.NewEncoder(&around)
	e.SetEscapeHTML(false) // it is no HTML, and people read it
	if err := e.Encode(page); err != nil {
		return err
	}
	head, tail, _ := bytes.Cut(around.Bytes(), []byte(`[]`))
	var line bytes.Buffer
	write := func(i int) error {
		line.Reset()
		if i > 0 {
			line.WriteByte(',')
		}
		if err := messages[i].write(&line); err != nil {
			return err
		}
		_, err := w.Write(line.Bytes())
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, err := w.Write(append(head, '['))
	for i := 0; i < len(messages) && err == nil; i++ {
		err = write(i)
	}
	if err == nil {
		_, err = w.Write(append([]byte{']'}, tail...))
	}
	if err != nil {
		panic(http.ErrAbortHandler) // or what there is would pass for the whole
	}
	return nil
}

func messageID(seq int64, at int) string { return fmt.Sprintf("msg_%d_%d", seq, at) }

func messageObjects(exchanges []store.Exchange, order store.Order) []sessionMessage {
	var messages []sessionMessage
	for _, e := range exchanges {
		for i := range e.Messages {
			j := i
			if order == store.Descending {
				j = len(e.Messages) - 1 - i
			}
			messages = append(messages, sessionMessage{
				ID: messageID(e.Seq, j), Created: e.SaidAt(j).Unix(), Said: e.Messages[j].JSON,
			})
		}
	}
	return messages
}
