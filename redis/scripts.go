package redis

import (
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

// script is one that runs on the server, which knows it by its digest once it has
// seen it. (go-redis has the like, which forgets the digest when it is loaded in a
// pipeline.)
type script struct{ text, digest string }

// lua holds the scripts, a file each, which begin with what they do, their keys and
// their arguments.
//
//go:embed lua/*.lua
var lua embed.FS

// source is the text of scripts, one behind the other.
func source(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		text, err := lua.ReadFile("lua/" + name + ".lua")
		if err != nil {
			panic(err) // it is part of the program
		}
		b.Write(text)
	}
	return b.String()
}

// What the first line of a script says of a server at its maxmemory. A script
// without one is stopped there at its first write, unless that frees memory, and
// may do any after that.
const (
	// evenFull is that of scripts that count or delete.
	evenFull = "#!lua flags=allow-oom\n"
	// notFull is that of scripts which go ahead of writes: they are refused
	// where those would be, also by a server that can't write to its disk, or
	// has too few replicas.
	notFull = "#!lua\n"
	// onlyReads is that of scripts that go ahead of none.
	onlyReads = "#!lua flags=no-writes\n"
)

func newScript(names ...string) *script { return newScriptWith("", names...) }

func newScriptWith(firstLine string, names ...string) *script {
	text := firstLine + source(names...)
	digest := sha1.Sum([]byte(text))
	return &script{text, hex.EncodeToString(digest[:])}
}

var (
	rateScript          = newScriptWith(evenFull, "rate")
	gatherScript        = newScriptWith(notFull, "gather")
	gatherReadsScript   = newScriptWith(onlyReads, "gather") // for what saves nothing
	appendScript        = newScript("append")
	pageScript          = newScript("page")
	atScript            = newScript("find", "at")
	putVectorsScript    = newScript("find", "put_vectors")
	deleteSessionScript = newScriptWith(evenFull, "delete_session")
	forgetSessionScript = newScriptWith(evenFull, "forget_session")
	createFileScript    = newScript("totals", "create_file")
	addChunksScript     = newScript("totals", "add_chunks")
	finishFileScript    = newScriptWith(evenFull, "totals", "finish_file")
	deleteFileScript    = newScriptWith(evenFull, "totals", "delete_file")
	purgeChunksScript   = newScriptWith(evenFull, "purge_chunks")
	finishPurgeScript   = newScriptWith(evenFull, "finish_purge")
	setVectorsScript    = newScript("set_vectors")
	setModelScript      = newScript("set_model")
	setTotalsScript     = newScript("set_totals")
	commitScript        = newScript("commit")
	copyLogScript       = newScript("copy_log")
	copySeenScript      = newScript("copy_seen")
	readyScript         = newScriptWith(notFull, "ready")
	putScript           = newScriptWith(evenFull, "put")

	// These are rare, and sent whole.
	unlistScript         = source("unlist")
	unlistEndedScript    = source("unlist_ended")
	restoreSessionScript = source("restore_session")
)

// scripts are all of them, to be loaded when the store is opened.
var scripts = []*script{
	rateScript, gatherScript, gatherReadsScript, appendScript, pageScript, atScript, putVectorsScript, deleteSessionScript, forgetSessionScript,
	createFileScript, addChunksScript, finishFileScript, deleteFileScript, purgeChunksScript, finishPurgeScript,
	setVectorsScript, setModelScript, setTotalsScript, commitScript, copyLogScript, copySeenScript, readyScript, putScript,
}

// loadScripts has every primary know the scripts, so that the first request
// needs no second trip.
func (s *Store) loadScripts(ctx context.Context) error {
	load := func(ctx context.Context, c goredis.Cmdable) error {
		_, err := c.Pipelined(ctx, func(p goredis.Pipeliner) error {
			for _, script := range scripts {
				p.ScriptLoad(ctx, script.text)
			}
			return nil
		})
		return err
	}
	if cluster, ok := s.client.(*goredis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, c *goredis.Client) error { return load(ctx, c) })
	}
	return load(ctx, s.client)
}

// run runs one script.
func (s *Store) run(ctx context.Context, script *script, keys []string, args ...any) *goredis.Cmd {
	c := call{script: script, keys: keys, args: args}
	if c.queue(ctx, s.client); c.unknown() {
		c.queueWhole(ctx, s.client)
	}
	return c.cmd
}

// call is a script to be run, and once it has, its reply.
type call struct {
	script *script
	keys   []string
	args   []any
	cmd    *goredis.Cmd
}

func (c *call) queue(ctx context.Context, to goredis.Scripter) {
	c.cmd = to.EvalSha(ctx, c.script.digest, c.keys, c.args...)
}

// queueWhole sends the script itself.
func (c *call) queueWhole(ctx context.Context, to goredis.Scripter) {
	c.cmd = to.Eval(ctx, c.script.text, c.keys, c.args...)
}

// unknown reports whether the server has forgotten the script, as it does when
// it is restarted or a replica takes over.
func (c *call) unknown() bool {
	return c.cmd != nil && goredis.HasErrorPrefix(c.cmd.Err(), "NOSCRIPT")
}

// together runs scripts in one trip, and a second time, whole, those that the
// server had forgotten. Their errors are in their commands; the error returned is
// the first of them.
func (s *Store) together(ctx context.Context, calls ...*call) error {
	pipe := s.client.Pipeline()
	for _, c := range calls {
		c.queue(ctx, pipe)
	}
	_, err := pipe.Exec(ctx)
	if err == nil {
		return nil
	}
	return s.again(ctx, calls...)
}

// again sends the scripts that were unknown in full, and returns the first error
// left.
func (s *Store) again(ctx context.Context, calls ...*call) error {
	pipe := s.client.Pipeline()
	for _, c := range calls {
		if c.unknown() {
			c.queueWhole(ctx, pipe)
		}
	}
	if pipe.Len() > 0 {
		_, _ = pipe.Exec(ctx) // the commands have the errors
	}
	for _, c := range calls {
		if err := c.cmd.Err(); err != nil {
			return err
		}
	}
	return nil
}
