package sandbox_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/backstory-proxy/backstory/knowledge/sandbox"
)

// targets are what a reader that a file has taken over would like to reach.
type targets struct {
	Folder  string // holds the file "secret"
	Address string // of a TCP server
	Socket  string // of a server, a path
	Process int
}

// attempts are the ways to reach them, with what bars each.
var attempts = []struct {
	name, barrier string
	try           func(targets) error
}{
	{"read a file", "landlock", func(t targets) error { _, err := os.ReadFile(filepath.Join(t.Folder, "secret")); return err }},
	{"list a folder", "landlock", func(t targets) error { _, err := os.ReadDir(t.Folder); return err }},
	{"write a file", "landlock", func(t targets) error { return os.WriteFile(filepath.Join(t.Folder, "new"), []byte("x"), 0o600) }},
	{"change a file", "landlock", func(t targets) error {
		f, err := os.OpenFile(filepath.Join(t.Folder, "secret"), os.O_WRONLY, 0)
		if err == nil {
			f.Close()
		}
		return err
	}},
	{"remove a file", "landlock", func(t targets) error { return os.Remove(filepath.Join(t.Folder, "old")) }},
	{"run a program", "landlock", func(targets) error { return exec.Command("/bin/sh", "-c", "true").Run() }},
	{"read the memory of a process", "landlock", func(t targets) error {
		f, err := os.Open(fmt.Sprintf("/proc/%d/mem", t.Process))
		if err == nil {
			f.Close()
		}
		return err
	}},
	{"signal a process", "landlock", func(t targets) error { return syscall.Kill(t.Process, 0) }},
	{"connect to an address", "seccomp", func(t targets) error { return dial("tcp", t.Address) }},
	{"connect to a socket", "seccomp", func(t targets) error { return dial("unix", t.Socket) }},
	{"gain rights", "no_new_privs", func(targets) error {
		if on, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err != nil || on == 1 {
			return fmt.Errorf("no new privileges, %v", err)
		}
		return nil
	}},
	{"use the powers of root", "capabilities", func(targets) error {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		if err := unix.Capget(&header, &data[0]); err != nil {
			return err
		}
		if data[0].Effective&^(1<<unix.CAP_DAC_OVERRIDE|1<<unix.CAP_DAC_READ_SEARCH) == 0 && data[1].Effective == 0 {
			return fmt.Errorf("the capabilities are %x", data[0].Effective)
		}
		return nil
	}},
}

func dial(network, address string) error {
	c, err := net.Dial(network, address)
	if err == nil {
		c.Close()
	}
	return err
}

// attempt tries them all and writes a line about each.
func attempt(in io.Reader, out io.Writer) {
	line, err := io.ReadAll(in)
	var t targets
	if err == nil {
		err = json.Unmarshal(line[strings.IndexByte(string(line), '{'):], &t)
	}
	if err != nil {
		fmt.Fprintln(out, err)
		return
	}
	for _, a := range attempts {
		if err := a.try(t); err != nil {
			fmt.Fprintf(out, "%s: refused\n\n", a.name)
		} else {
			fmt.Fprintf(out, "%s: done\n\n", a.name)
		}
	}
}

func init() {
	misbehave["reach"] = func() {
		line, _ := io.ReadAll(os.Stdin)
		_, content, _ := strings.Cut(string(line), "\n") // behind the task
		var said strings.Builder
		attempt(strings.NewReader(content), &said)
		fmt.Fprintf(os.Stderr, "{\"error\":%q}", said.String())
	}
	misbehave["hide"] = func() {
		if err := sandbox.Hide(); err != nil {
			fmt.Print(err)
		}
		n, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
		fmt.Print(n, err)
	}
	if filepath.Base(os.Args[0]) == "pdftotext" {
		attempt(os.Stdin, os.Stdout)
		os.Exit(0)
	}
}

// newTargets makes what is to be reached, all of it within reach of this process.
func newTargets(t *testing.T) []byte {
	made := targets{Folder: t.TempDir(), Process: os.Getpid()}
	for _, name := range []string{"secret", "old"} {
		if err := os.WriteFile(filepath.Join(made.Folder, name), []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	listen := func(network, address string) string {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l.Addr().String()
	}
	made.Address, made.Socket = listen("tcp", "127.0.0.1:0"), listen("unix", filepath.Join(made.Folder, "s"))
	line, err := json.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// refused checks that each attempt was refused, as far as this kernel can. What
// it can't is told.
func refused(t *testing.T, said string) {
	_, off := sandbox.Barriers()
	version, _, _ := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	for _, a := range attempts {
		t.Run(a.name, func(t *testing.T) {
			if err := off[a.barrier]; err != nil {
				t.Skipf("NOT TRIED: %s is not available here: %v", a.barrier, err)
			}
			if a.name == "signal a process" && version < 6 {
				t.Skipf("NOT TRIED: Landlock is of version %d here, and bars signals from 6 on", version)
			}
			if !strings.Contains(said, a.name+": refused\n") {
				t.Errorf("it was done, or not tried:\n%s", said)
			}
		})
	}
}

func TestAReaderThatWasTakenOverReachesNothing(t *testing.T) {
	_, err := reader("reach").Read(t.Context(), "acme", "a.pdf", bytes.NewReader(newTargets(t)))
	if err == nil {
		t.Fatal("it said nothing")
	}
	refused(t, err.Error())
}

// linkSelf puts this program in place of pdftotext.
func linkSelf(t *testing.T) {
	folder := t.TempDir()
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "pdftotext"), self, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder)
}

func TestAPDFReaderThatWasTakenOverReachesNothing(t *testing.T) {
	linkSelf(t)
	text, err := reader("").Read(t.Context(), "acme", "a.pdf", bytes.NewReader(append([]byte("%PDF-1.4\n"), newTargets(t)...)))
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	var said strings.Builder
	for b, err := range text.Blocks() {
		if err != nil {
			t.Fatal(err)
		}
		said.WriteString(b.Text + "\n")
	}
	if text.Info.Reader != "pdftotext" {
		t.Errorf("%+v", text.Info)
	}
	refused(t, said.String())
}

func TestWithoutConfinementItWouldReachAll(t *testing.T) {
	child := exec.Command(os.Args[0], "reach")
	child.Stdin = strings.NewReader("{}\n" + string(newTargets(t)))
	said, err := child.CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", said)
	for _, a := range attempts {
		want := a.name + `: done\n`
		if (a.barrier == "capabilities" || a.barrier == "no_new_privs") && a.try(targets{}) != nil {
			want = a.name + `: refused\n` // it is what this process is as well
		}
		if a.name == "read the memory of a process" && os.Geteuid() != 0 {
			continue // whether one may is up to the system
		}
		if !strings.Contains(string(said), want) {
			t.Errorf("%s: got %s", a.name, said)
		}
	}
}

func TestConfinementLeavesThisProcessAlone(t *testing.T) {
	on, off := sandbox.Barriers()
	t.Logf("on %q, off %v", on, off)
	if len(on)+len(off) != 4 {
		t.Errorf("on %q, off %v", on, off)
	}
	threads, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil || len(threads) == 0 {
		t.Fatal(threads, err)
	}
	for _, status := range threads {
		b, err := os.ReadFile(status)
		if err == nil && strings.Contains(string(b), "NoNewPrivs:\t1") && strings.HasPrefix(status, fmt.Sprintf("/proc/self/task/%d/", os.Getpid())) {
			t.Errorf("the first thread is confined: %s", b)
		}
	}
	done := make(chan error)
	for range 50 { // whatever threads they run on
		go func() {
			_, err := os.ReadDir("/")
			done <- err
		}()
	}
	for range 50 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestAHiddenProcessLeavesNoDump(t *testing.T) {
	said, err := exec.Command(os.Args[0], "hide").Output()
	if err != nil || string(said) != "0 <nil>" {
		t.Errorf("got %q, %v", said, err)
	}
}
