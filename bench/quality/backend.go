package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

// redisURL names the variable with a Redis to measure on as well.
const redisURL = "BACKSTORY_TEST_REDIS"

// backend is a store to measure on.
type backend struct {
	name      string
	directive string // the store directive's arguments
	noFiles   bool
	remove    func(context.Context) error // what was kept in it; nil: nothing is left
}

// backends are the embedded store and, where url names one, a Redis.
func backends(ctx context.Context, url string) ([]backend, error) {
	all := []backend{{name: "sqlite", directive: "sqlite ./backstory.db {\n\t\t\tsynchronous normal\n\t\t}"}}
	if url == "" {
		return all, nil
	}
	options, err := goredis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", redisURL, err)
	}
	db := goredis.NewClient(options)
	if err := db.Ping(ctx).Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", redisURL, err)
	}
	// Keys of its own, so that it can be any Redis.
	prefix := "bench-quality-" + strings.ToLower(rand.Text()[:8]) + ":"
	b := backend{name: "redis", remove: func(ctx context.Context) error { return removeKeys(ctx, db, prefix) }}
	b.directive = fmt.Sprintf("redis {env.%s} {\n\t\t\tprefix %s\n", redisURL, prefix)
	if err := db.Do(ctx, "FT._LIST").Err(); err != nil {
		b.noFiles = true
		b.directive += "\t\t\tfiles off\n"
	}
	b.directive += "\t\t}"
	return append(all, b), nil
}

// removeKeys removes everything that begins with a prefix, indexes included.
func removeKeys(ctx context.Context, db *goredis.Client, prefix string) error {
	defer db.Close()
	indexes, err := db.Do(ctx, "FT._LIST").StringSlice()
	if err != nil {
		indexes = nil // no search module, and so none
	}
	for _, name := range indexes {
		if strings.HasPrefix(name, prefix) {
			if err := db.Do(ctx, "FT.DROPINDEX", name).Err(); err != nil {
				return err
			}
		}
	}
	keys := db.Scan(ctx, 0, prefix+"*", 1000).Iterator()
	for keys.Next(ctx) {
		if err := db.Unlink(ctx, keys.Val()).Err(); err != nil {
			return err
		}
	}
	return keys.Err()
}
