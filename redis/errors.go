package redis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/backstory-proxy/backstory/store"
)

// errNoSearch is the want of the search module.
var errNoSearch = errors.New("the server has no search module; Redis 8 or Redis Stack is needed for file search, unless files are off")

// timerSlack is how far two timers set for the same moment are apart at most.
const timerSlack = 20 * time.Millisecond

// failure names the cause of an error: that of the context, where it is what
// ended the call.
func failure(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	// A connection's own timer may go off just before the context's does.
	if end, limited := ctx.Deadline(); limited && errors.Is(err, os.ErrDeadlineExceeded) && time.Until(end) < timerSlack {
		return context.DeadlineExceeded
	}
	return fmt.Errorf("redis: %w", explain(err))
}

// explain says what is wrong and what to do, for the errors that have a remedy.
// It quotes no more of a server's error than is known to hold no user's text.
func explain(err error) error {
	var dns *net.DNSError
	var reply goredis.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("the connection was refused; is Redis running there? (%w)", err)
	case errors.As(err, &dns):
		return fmt.Errorf("there is no host %s; check the URL (%w)", dns.Name, err)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("the server closed the connection; does it want TLS (rediss://), or is it protected? (%w)", err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("it didn't answer in time; check the host, the firewall, and whether it speaks TLS (%w)", err)
	case errors.As(err, &reply):
		return explainReply(reply)
	}
	return err
}

// explainOpen is explain for a store that can't be opened, where Sentinels may be
// the ones who answer.
func explainOpen(t Target, err error) error {
	if t.Master == "" {
		return explain(err)
	}
	switch low := strings.ToLower(err.Error()); {
	case errors.Is(err, goredis.Nil):
		return fmt.Errorf("the Sentinels know no primary %q; check the path of the URL", t.Master)
	case strings.Contains(low, "unknown command") && strings.Contains(low, "'sentinel"):
		return errors.New("what answers there is no Sentinel; name the Sentinels, or write redis://")
	case strings.Contains(low, "noauth"):
		return errors.New("it wants a password; write that of Redis as redis+sentinel://user:password@host/primary, that of the Sentinels as ?sentinel_password=")
	}
	return explain(err)
}

func explainReply(err goredis.Error) error {
	text := err.Error()
	switch low := strings.ToLower(text); {
	case strings.HasPrefix(low, "noauth"):
		return errors.New("it wants a password; write redis://user:password@host")
	case strings.HasPrefix(low, "wrongpass"), strings.Contains(low, "invalid password"):
		return errors.New("user or password is wrong")
	case strings.HasPrefix(low, "noperm"):
		return fmt.Errorf("the user may not do what the store needs; grant it ~<prefix>* and +@all -@admin -@dangerous (%w)", err)
	case strings.Contains(low, "unknown command") && strings.Contains(low, "'ft."):
		return errNoSearch
	case strings.Contains(low, "unknown command"):
		return errors.New("the server is too old: Redis 7 is needed, and Redis 8 or Redis Stack for file search")
	case strings.Contains(low, "index on db != 0"):
		return errors.New("file search works in database 0 only; take the database out of the URL")
	case strings.Contains(low, "timeout limit was reached"):
		return errors.New("a search took longer than it may on the server; see search_timeout")
	case strings.HasPrefix(low, "oom"):
		return fmt.Errorf("%w: the server is at its maxmemory; raise that, or delete", store.ErrFull)
	case strings.HasPrefix(low, "misconf"):
		return errors.New("the server can't write to its disk and refuses writes; see its log")
	case strings.HasPrefix(low, "noreplicas"):
		return errors.New("too few replicas are connected (min-replicas-to-write)")
	case strings.HasPrefix(low, "readonly"):
		return errors.New("the server is a replica; name the primary, or use redis+sentinel://")
	case strings.HasPrefix(low, "moved"):
		return errors.New("the server is part of a Cluster; write redis+cluster://")
	case strings.HasPrefix(low, "err this instance has cluster support disabled"):
		return errors.New("the server isn't part of a Cluster; write redis://")
	}
	return err
}

// isNoIndex tells the unknown-index error, which has had several wordings.
func isNoIndex(err error) bool {
	if err == nil {
		return false
	}
	text := strings.ToLower(err.Error())
	return strings.Contains(text, "no such index") || strings.Contains(text, "unknown index") || strings.Contains(text, "index_not_found")
}

// isIndexThere tells the error of creating an index that exists.
func isIndexThere(err error) bool {
	return err != nil && strings.Contains(strings.ToLower(err.Error()), "index already exists")
}
