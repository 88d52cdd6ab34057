package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/backstory-proxy/backstory/memory"
	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/prompt"
	"github.com/backstory-proxy/backstory/store"
	"github.com/backstory-proxy/backstory/tokens"
)

// importMessages saves messages that were said elsewhere, at the end of a
// session, and answers with the first page of them.
func (sa *SessionsAPI) importMessages(c call) error {
	w, r, who, id := c.w, c.r, c.who, c.id()
	in, err := sa.readImport(c, id)
	if err != nil {
		return sa.gate.countRefused(w, r, who, err)
	}
	if err := sa.shared.catchUp(r.Context(), who.scope, id); err != nil {
		return err
	}
	asked := store.GatherRequest{Scope: who.scope, Limit: who.plan.RequestsPerMinute, Counted: w.counted, Session: id}
	if in.retried {
		asked.Messages = earlierImports
	}
	gathered, err := sa.shared.Gather(r.Context(), asked)
	if err != nil {
		return &unavailable{err}
	}
	if !asked.Counted {
		if err := sa.gate.admit(w, who, gathered.Rate); err != nil {
			return err
		}
	}
	tally := tokens.O200K().NewTally()
	history := memory.History{
		ID: in.name(gathered), Messages: in.messages, Now: time.Now(),
		Count: func(m *openai.Message) int {
			if r.Context().Err() != nil {
				return 0 // nobody waits any more; what comes of it isn't saved
			}
			return prompt.MessageTokens(m, tally.Count)
		},
	}
	exchanges := history.Exchanges()
	if len(exchanges) == 0 {
		return openai.Invalid("messages", "There is nothing to keep in 'messages': system and developer messages are not part of a session. Send them with each chat request.")
	}
	if slices.ContainsFunc(exchanges, func(e store.Exchange) bool { return len(e.Messages) > memory.MaxExchange }) {
		return openai.Invalid("messages", "Invalid 'messages': more than %d messages from one question to the next. Import them in several requests.", memory.MaxExchange)
	}
	if err := r.Context().Err(); err != nil {
		return err
	}
	seqs, err := sa.shared.Import(r.Context(), store.Import{
		Scope: who.scope, Session: id, Exchanges: exchanges,
		Mark: gathered.Mark, TTL: who.plan.SessionsTTL,
	})
	switch {
	case errors.Is(err, store.ErrDeleted):
		return &openai.Error{
			Status: http.StatusConflict, Type: openai.TypeInvalidRequest, Param: "id", Final: true,
			Message: "The session was deleted while the messages were being imported. Nothing was kept.",
		}
	case errors.Is(err, store.ErrUnsupported):
		return openai.StatusError(http.StatusNotImplemented, "This service takes in no messages.")
	case errors.Is(err, store.ErrUnconfirmed) && len(seqs) > 0:
		// Who sends it again would have it twice, and has it still.
		sa.logger.Warn("imported messages may be lost in a failover", zap.String("request_id", w.id), zap.Error(err))
	case err != nil:
		return &unavailable{err}
	}
	// As it is kept: of an import that came before, that isn't what came now.
	kept, err := sa.shared.ExchangesAt(r.Context(), who.scope, id, seqs[:min(len(seqs), in.limit+1)])
	if err != nil {
		return &unavailable{err}
	}
	more := len(kept) > 0 && seqs[len(seqs)-1] > kept[len(kept)-1].Seq
	return respondMessages(w, messageObjects(kept, store.Ascending), in.limit, more)
}

// earlierImports is among how many of a session's last messages a retried
// import is looked for: others may have been said meanwhile.
const earlierImports = 64

// imported is a request to import messages.
type imported struct {
	messages []openai.Imported
	digest   string // of the body
	key      string // Idempotency-Key
	retried  bool   // the client says so
	limit    int    // of the page that answers
}

func (sa *SessionsAPI) readImport(c call, id string) (in imported, err error) {
	r := c.r
	if id == "" {
		return in, openai.Invalid("id", "The session id in the path is empty.")
	}
	if in.limit, err = readLimit(r.URL.Query(), maxPage, DefaultPage); err != nil {
		return in, err
	}
	body, err := c.read(sa.options.MaxBody)
	if err != nil {
		return in, err
	}
	sum := sha256.Sum256(body)
	in.digest = hex.EncodeToString(sum[:12])
	in.key = r.Header.Get("Idempotency-Key")
	retries, _ := strconv.Atoi(r.Header.Get("X-Stainless-Retry-Count"))
	in.retried = retries > 0
	if isLines(r.Header.Get("Content-Type")) {
		in.messages, err = openai.ParseImportLines(body, time.Now())
	} else {
		in.messages, err = openai.ParseImport(body, time.Now())
	}
	return in, err
}

// name begins the IDs of the exchanges, by which the store tells what it has. It
// is the body's, and, so that one may import the same twice, that of the place
// in the session where the import was to stand; the place of the earlier try
// where the client says that it retries. With an Idempotency-Key it is that
// key's, wherever the session stands.
func (in *imported) name(g store.Gathered) string {
	body := "import-" + in.digest + "-"
	if in.key != "" {
		sum := sha256.Sum256([]byte(in.key))
		return body + hex.EncodeToString(sum[:12])
	}
	if in.retried {
		for i := len(g.Tail) - 1; i >= 0; i-- {
			if id := g.Tail[i].ID; strings.HasPrefix(id, body) {
				return id[:strings.LastIndexByte(id, '-')]
			}
		}
	}
	return body + fmt.Sprint(g.Mark.Seq)
}
