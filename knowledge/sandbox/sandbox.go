// Package sandbox reads files in a process of its own, so that nothing that a
// file does to its reader harms the program: no panic, no endless loop, no
// memory used up.
//
// The program starts itself again with the argument Argument, and is then no
// more than Child: the file goes in through standard input, its text comes out
// through standard output. Memory, processor time and output are limited by the
// operating system where it can (Linux), time by the clock everywhere.
package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/backstory-proxy/backstory/knowledge/extract"
)

// Argument makes the program a child, as its first argument.
const Argument = "extract"

// Reader reads files in children: see New.
type Reader struct {
	// Command starts a child: a program and its arguments. Default: this
	// program with Argument.
	Command []string
	// Patience is how long a file may take, and for each MB of it half as long
	// again, up to MaxPatience. Default: DefaultPatience.
	Patience time.Duration
	// Memory bounds what a child takes, bytes, for the operating systems that
	// can tell. Default: DefaultMemory.
	Memory int64
	// Waiting bounds the files that wait for others to be read, bytes. One is let
	// in always. Default: DefaultWaiting.
	Waiting int64

	slots queue
}

const (
	// DefaultPatience: real documents take well under a second; somebody is
	// waiting for the others. A PDF of 10,000 pages and 6 MB takes 9 s.
	DefaultPatience = 8 * time.Second
	// MaxPatience is the most that a file may take, however large it is: what a
	// tenant can hold a slot for. A workbook of 4 million cells and 20 MB takes
	// 25 s; files that are larger are pictures for the most part.
	MaxPatience = time.Minute
	// DefaultMemory holds the largest upload in memory twice, and leaves room.
	DefaultMemory = 768 << 20
	// DefaultWaiting holds two of the largest uploads, or some hundred documents
	// of the usual size.
	DefaultWaiting = 256 << 20
)

// ErrFailed says that a file could not be read for a reason that lies not with
// it, but with this machine.
var ErrFailed = errors.New("reading a file in a process of its own")

// New returns a Reader with as many children at once as there are processors.
func New() *Reader { return &Reader{slots: queue{free: runtime.GOMAXPROCS(0)}} }

// task is what a child is told ahead of the content.
type task struct {
	Name    string `json:"name"`
	Size    int    `json:"size"`
	Memory  int64  `json:"memory"`
	Seconds int64  `json:"seconds"` // of processor time
}

// result is what a child says at its end.
type result struct {
	Info        extract.Info `json:"info"`
	Error       string       `json:"error,omitempty"`
	Unsupported bool         `json:"unsupported,omitempty"`
}

// Read gets the text of a tenant's file. The files of all tenants are read in
// turn. The error is an *extract.Error where it is the file's fault, and wraps
// ErrBusy where too many are waiting. The Text must be closed.
func (r *Reader) Read(ctx context.Context, tenant, name string, content extract.Content) (*Text, error) {
	most := r.Waiting
	if most <= 0 {
		most = DefaultWaiting
	}
	if err := r.slots.enter(ctx, tenant, content.Size(), most); err != nil {
		return nil, err
	}
	defer r.slots.leave(tenant)
	out, err := newSpool()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFailed, err)
	}
	info, err := r.run(ctx, out, name, content)
	if err != nil {
		out.close()
		return nil, err
	}
	return &Text{Info: info, spool: out}, nil
}

// run has a child read the file.
func (r *Reader) run(ctx context.Context, out *spool, name string, content extract.Content) (extract.Info, error) {
	t := task{Name: name, Size: int(content.Size()), Memory: r.Memory}
	if t.Memory <= 0 {
		t.Memory = DefaultMemory
	}
	patience := r.patience(t.Size)
	t.Seconds = int64(patience/time.Second) + 1
	first, err := json.Marshal(t)
	if err != nil {
		return extract.Info{}, err
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd, err := r.command(limited, t.Memory)
	if err != nil {
		return extract.Info{}, err
	}
	var said saying
	cmd.Stdin = io.MultiReader(bytes.NewReader(append(first, '\n')), io.NewSectionReader(content, 0, content.Size()))
	cmd.Stdout, cmd.Stderr = out.file, &said
	if err = startConfined(cmd); err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		endGroup(cmd)
	}
	switch {
	case ctx.Err() != nil:
		return extract.Info{}, ctx.Err()
	case limited.Err() != nil:
		return extract.Info{}, tooLong(patience)
	}
	return verdict(err, said.String())
}

// patience is how long a file of a size may take.
func (r *Reader) patience(size int) time.Duration {
	base := r.Patience
	if base <= 0 {
		base = DefaultPatience
	}
	return min(base+time.Duration(size>>20)*base/2, max(MaxPatience, base))
}

func tooLong(patience time.Duration) *extract.Error {
	return &extract.Error{Message: fmt.Sprintf("the file takes too long to read: more than %.0f s", patience.Seconds())}
}

// command prepares a child. It gets nothing of this program's environment but
// what it needs: that holds keys.
func (r *Reader) command(ctx context.Context, memory int64) (*exec.Cmd, error) {
	command := r.Command
	if len(command) == 0 {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFailed, err)
		}
		command = []string{self, Argument}
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"),
		fmt.Sprintf("GOMEMLIMIT=%d", memory/4*3),
		fmt.Sprintf("GOMAXPROCS=%d", runtime.GOMAXPROCS(0)), // it can't see its share itself
		"GOTRACEBACK=none",
		"LC_ALL=C.UTF-8",
	}
	cmd.WaitDelay = time.Second
	ownGroup(cmd)
	return cmd, nil
}

// The exit status of a Go program that was ended by a panic or by the runtime,
// such as for want of memory.
const crashed = 2

// verdict tells from a child's end what came of the file.
func verdict(err error, said string) (extract.Info, error) {
	var exit *exec.ExitError
	switch {
	case err == nil:
		var r result
		said = strings.TrimSpace(said)
		if err := json.Unmarshal([]byte(said[strings.LastIndexByte(said, '\n')+1:]), &r); err != nil {
			return extract.Info{}, fmt.Errorf("%w: this program, run with %q, did not do it: %w", ErrFailed, Argument, err)
		}
		if r.Error != "" {
			return extract.Info{}, &extract.Error{Unsupported: r.Unsupported, Message: r.Error}
		}
		return r.Info, nil
	case !errors.As(err, &exit):
		return extract.Info{}, fmt.Errorf("%w: %w", ErrFailed, err)
	case killed(exit) || outOfMemory(exit, said):
		return extract.Info{}, &extract.Error{Message: "the file takes too much memory or time to read; please upload it in parts"}
	case exit.ExitCode() == crashed || exit.ExitCode() < 0:
		return extract.Info{}, &extract.Error{Message: "the file is broken: its reader failed on it"}
	}
	return extract.Info{}, fmt.Errorf("%w: %w: %s", ErrFailed, err, said)
}

// outOfMemory recognises what the Go runtime says when it gets no more; at times
// it trips over that itself.
func outOfMemory(exit *exec.ExitError, said string) bool {
	return exit.ExitCode() == crashed && (strings.Contains(said, "out of memory") || strings.Contains(said, "cannot allocate memory") ||
		strings.Contains(said, "SIGSEGV: segmentation violation"))
}

// saying keeps the beginning of what is written to it, where a crash tells its
// reason, and the end, where a result stands.
type saying struct{ head, tail []byte }

// sayingLength is how much is kept of either, bytes.
const sayingLength = 4 << 10

func (s *saying) Write(p []byte) (int, error) {
	n := len(p)
	first := min(sayingLength-len(s.head), n)
	s.head = append(s.head, p[:first]...)
	p = p[first:]
	s.tail = append(s.tail, p[max(0, len(p)-sayingLength):]...)
	s.tail = append(s.tail[:0], s.tail[max(0, len(s.tail)-sayingLength):]...)
	return n, nil
}

func (s *saying) String() string { return string(s.head) + string(s.tail) }
