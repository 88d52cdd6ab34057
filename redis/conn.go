package redis

import (
	"context"
	"errors"
	"fmt"

	"github.com/RediSearch/redisearch-go/v2/redisearch"
	redigo "github.com/gomodule/redigo/redis"
	goredis "github.com/redis/go-redis/v9"
)

// conn is what redisearch-go takes for a connection: it hands each command to
// the go-redis client, which has the connections, for one call of the store.
type conn struct {
	ctx context.Context
	to  doer
}

// doer is a go-redis client, of all servers or of one.
type doer interface {
	Do(ctx context.Context, args ...any) *goredis.Cmd
}

// index returns redisearch-go's client of an index, for one call: it knows no
// contexts, so that each call has a client of its own. more is appended to every
// command, since it can't say all that the server understands.
func index(ctx context.Context, to doer, name string, more ...any) *redisearch.Client {
	pool := &redigo.Pool{Dial: func() (redigo.Conn, error) {
		return &extended{conn{ctx, to}, more}, nil
	}}
	return redisearch.NewClientFromPool(pool, name)
}

// extended is a conn that appends to commands.
type extended struct {
	conn
	more []any
}

func (c *extended) Do(name string, args ...any) (any, error) {
	if name == "" {
		return nil, nil // redigo flushes a connection before it is put back
	}
	return c.conn.Do(name, append(args[:len(args):len(args)], c.more...)...)
}

func (c *conn) Do(name string, args ...any) (any, error) {
	all := make([]any, 1, 1+len(args))
	all[0] = name
	for _, arg := range args {
		switch arg.(type) {
		case string, []byte, int, int64, float64:
		default:
			arg = fmt.Sprint(arg) // named types, which go-redis can't marshal
		}
		all = append(all, arg)
	}
	reply, err := c.to.Do(c.ctx, all...).Result()
	if err != nil {
		return nil, err
	}
	if name == "FT.SEARCH" {
		return tidy(reply)
	}
	return redigoReply(reply), nil
}

// tidy makes a reply to a search such that redisearch-go doesn't panic: it counts
// on fields, which are nil where a document went away in the middle, or is in
// another database.
func tidy(reply any) (any, error) {
	list, ok := reply.([]any)
	if !ok || len(list) == 0 {
		return nil, errors.New("the reply to a search is no list")
	}
	if _, ok := list[0].(int64); !ok {
		return nil, errors.New("the reply to a search has no number of hits")
	}
	out := make([]any, len(list))
	for i, v := range list {
		if v == nil {
			v = []any{}
		}
		if fields, ok := v.([]any); ok && len(fields)%2 != 0 {
			return nil, errors.New("the reply to a search has a field without a value")
		}
		out[i] = redigoReply(v)
	}
	return out, nil
}

// redigoReply turns go-redis' reply into what redigo would have read.
func redigoReply(reply any) any {
	switch v := reply.(type) {
	case string:
		return []byte(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = redigoReply(v[i])
		}
		return list
	}
	return reply
}

var errPipelined = errors.New("redis: redisearch-go sent a command in parts")

func (*conn) Close() error              { return nil }
func (*conn) Err() error                { return nil }
func (*conn) Flush() error              { return errPipelined }
func (*conn) Receive() (any, error)     { return nil, errPipelined }
func (*conn) Send(string, ...any) error { return errPipelined }

var _ redigo.Conn = (*extended)(nil)
