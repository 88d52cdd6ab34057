package cli

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

const (
	// redisPatience bounds an answer where nobody else waits.
	redisPatience = 30 * time.Second
	// barEvery is how often a bar is drawn, and lineEvery a line written where
	// there is no terminal to draw on.
	barEvery  = 200 * time.Millisecond
	lineEvery = 10 * time.Second
	barWidth  = 30
)

// progress tells what is being done, and how much of it is done.
type progress interface {
	Now() (phase string, done, total int64)
}

// showProgress shows progress until the function that it returns is called.
func showProgress(f *os.File, p progress) (stop func()) {
	bar := term.IsTerminal(int(f.Fd()))
	every := lineEvery
	if bar {
		every = barEvery
	}
	done := make(chan struct{})
	var shown sync.WaitGroup
	shown.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		var pace pace
		for {
			select {
			case <-done:
				if bar {
					fmt.Fprint(f, "\r\x1b[K") // the line is free for what follows
				}
				return
			case now := <-tick.C:
				text := pace.text(now, p)
				if bar {
					fmt.Fprint(f, "\r"+text+"\x1b[K")
				} else {
					fmt.Fprintln(f, text)
				}
			}
		}
	})
	return func() {
		close(done)
		shown.Wait()
	}
}

// pace is when a phase began, from which the time left is estimated.
type pace struct {
	phase string
	begun time.Time
	from  int64
}

func (p *pace) text(now time.Time, of progress) string {
	phase, done, total := of.Now()
	if phase != p.phase {
		p.phase, p.begun, p.from = phase, now, done
	}
	if total == 0 {
		return phase
	}
	done = min(done, total)
	share := float64(done) / float64(total)
	full := int(share * barWidth)
	text := fmt.Sprintf("%-9s [%s%s] %3.0f %%  %d of %d", phase, strings.Repeat("=", full), strings.Repeat(" ", barWidth-full), share*100, done, total)
	if gone := done - p.from; gone > 0 && done < total {
		left := time.Duration(float64(now.Sub(p.begun)) * float64(total-done) / float64(gone))
		text += fmt.Sprintf("  %s left", left.Round(time.Second))
	}
	return text
}
