package extract

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// readPDF reads a PDF, page by page: with poppler's pdftotext where it is
// installed, else with PDFium.
func readPDF(o *output, content []byte) error {
	program, err := exec.LookPath("pdftotext")
	if err != nil {
		return readPDFium(o, content)
	}
	o.info.Reader = "pdftotext"
	err = readPoppler(o, program, content)
	if errors.Is(err, errNotRun) {
		return readPDFium(o, content)
	}
	return err
}

// errNotRun says that pdftotext is there, but can't be run: its libraries are
// missing, or out of reach.
var errNotRun = errors.New("pdftotext can't be run")

// The exit status of a program whose libraries can't be loaded, as the loaders of
// glibc and musl have it.
const notLoaded = 127

var errPDFPassword = unreadable("the PDF is protected by a password; please remove it and upload the PDF again")

// readPoppler runs pdftotext twice at once: it gives the text in the order of
// reading, which takes tables apart, or as it lies on the page, which
// interleaves columns. Each page is taken as suits it.
func readPoppler(o *output, program string, content []byte) error {
	flow, err := startPoppler(o, program, content)
	if err != nil {
		return err
	}
	defer flow.stop()
	layout, err := startPoppler(o, program, content, "-layout")
	if err != nil {
		return err
	}
	defer layout.stop()
	var w pageWriter
	for o.page = 1; ; o.page++ {
		running, more, err := flow.next()
		if err != nil {
			return err
		}
		laid, _, err := layout.next()
		if err != nil {
			return err
		}
		if !more {
			break
		}
		if tabular(laid) {
			err = w.table(o, laid)
		} else {
			err = w.prose(o, running)
		}
		if err != nil {
			return err
		}
	}
	return flow.end()
}

// poppler is a pdftotext at work.
type poppler struct {
	cmd    *exec.Cmd
	out    *bufio.Reader
	most   int          // bytes of a page
	failed bytes.Buffer // what it wrote of errors
	waited bool
}

func startPoppler(o *output, program string, content []byte, options ...string) (*poppler, error) {
	p := &poppler{cmd: exec.CommandContext(o.ctx, program, append(options, "-enc", "UTF-8", "-eol", "unix", "-", "-")...)}
	p.cmd.Args = append([]string{program}, p.cmd.Args[1:]...)
	p.cmd.Stdin = bytes.NewReader(content)
	p.cmd.Stderr = &limited{b: &p.failed, left: 4 << 10}
	pipe, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReaderSize(pipe, 64<<10)
	p.most = o.most
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotRun, err)
	}
	return p, nil
}

// next returns the text of the next page; more is false behind the last.
func (p *poppler) next() (page string, more bool, err error) {
	var b strings.Builder
	for {
		part, err := p.out.ReadSlice('\f')
		b.Write(bytes.TrimSuffix(part, []byte("\f")))
		switch {
		case err == nil:
			return b.String(), true, nil
		case b.Len() > p.most:
			return "", false, tooMuch(p.most)
		case errors.Is(err, io.EOF):
			return b.String(), b.Len() > 0, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return "", false, err
		}
	}
}

// end waits for the program and returns what it made of the file.
func (p *poppler) end() error {
	p.waited = true
	err := p.cmd.Wait()
	switch {
	case err == nil:
		return nil
	case p.cmd.ProcessState != nil && p.cmd.ProcessState.ExitCode() == notLoaded:
		return errNotRun
	case strings.Contains(p.failed.String(), "Incorrect password"):
		return errPDFPassword
	}
	return fmt.Errorf("pdftotext: %w", err)
}

// stop ends the program if it still runs.
func (p *poppler) stop() {
	if !p.waited {
		_ = p.cmd.Process.Kill()
		_ = p.end()
	}
}

// limited is a writer that forgets what is too much.
type limited struct {
	b    *bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.b.Write(p[:n])
	l.left -= n
	return len(p), nil
}
