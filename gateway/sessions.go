package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"

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

// MarshalJSON puts our members ahead of the message's own, as the OpenAI API
// does with the messages of a stored completion. Where a message has members of
// these names itself, ours stand.
func (m sessionMessage) MarshalJSON() ([]byte, error) {
	ours := fmt.Sprintf(`"id":%q,"object":%q,"created_at":%d`, m.ID, openai.MessageObject, m.Created)
	// A message is kept as it came, but a list that isn't UTF-8 can't be read.
	return bytes.ToValidUTF8(openai.Lead(m.Said, ours, "id", "object", "created_at"), []byte("\ufffd")), nil
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
	// An exchange holds at least one message.
	found, err := sa.shared.Exchanges(r.Context(), scope, id, from, limit+2, order)
	if err != nil {
		return noSuchSession(err)
	}
	messages := messageObjects(found, order)
	for i := range messages {
		if messages[i].ID == after {
			messages = messages[i+1:]
			break
		}
	}
	return respond.JSON(w, openai.NewList(messages, limit, func(m sessionMessage) string { return m.ID }))
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
