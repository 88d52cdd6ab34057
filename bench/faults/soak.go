package main

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// sample is what a proxy holds at one moment.
type sample struct {
	rss         float64 // MB
	goroutines  float64
	descriptors float64
}

// watched is a site under a steady load.
type watched struct {
	name    string
	site    *site
	samples []sample
	counts
	wrong   int64
	example string
}

// soak lets clients chat with a site on each store, for so long, in sessions that
// end and begin anew, and writes what the proxies held to soak.csv. It is an error
// if an exchange wasn't as promised, or if what they held kept growing.
func soak(bin, dir string, clients int, length time.Duration) error {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		return fmt.Errorf("what a process holds is read from /proc: %w", err)
	}
	var all []*watched
	for name, make := range map[string]func(bin, dir string) (*site, error){"SQLite": embedded, "Redis": onRedis} {
		home := filepath.Join(dir, name)
		if err := os.Mkdir(home, 0o700); err != nil {
			return err
		}
		s, err := make(bin, home)
		if err != nil {
			return err
		}
		defer s.end()
		if err := s.start(); err != nil {
			return err
		}
		all = append(all, &watched{name: name, site: s})
	}
	slices.SortFunc(all, func(a, b *watched) int { return strings.Compare(a.name, b.name) })
	began := time.Now()
	errs := make(chan error, len(all))
	for _, w := range all {
		go func() { errs <- w.soak(clients, began.Add(length)) }()
	}
	for range all {
		if err := <-errs; err != nil {
			return err
		}
	}
	if err := write(all); err != nil {
		return err
	}
	var failed []error
	for _, w := range all {
		failed = append(failed, w.report(time.Since(began)))
	}
	return errors.Join(failed...)
}

const (
	every    = 2 * time.Second        // how often a sample is taken
	sitting  = 20 * time.Second       // how long a session lasts
	thinking = 100 * time.Millisecond // what a client waits before it goes on
)

func (w *watched) soak(clients int, until time.Time) error {
	for n := 0; time.Now().Before(until); n++ {
		l := w.site.chat(clients, fmt.Sprintf("soak-%d", n), thinking)
		for end := time.Now().Add(sitting); time.Now().Before(end); {
			if w.site.servers == nil { // the Redis here has no search
				if err := w.site.upload(n); err != nil {
					return err
				}
			}
			time.Sleep(every)
			one, err := w.site.proxies[0].sample()
			if err != nil {
				return err
			}
			w.samples = append(w.samples, one)
		}
		l.halt()
		if w.wrong += l.wrong.Load(); l.wrong.Load() > 0 {
			w.example = l.lastErr.Load().(string)
		}
		for _, s := range l.sessions {
			stored, err := l.messages(s.id)
			if err != nil {
				return err
			}
			c := check(s, stored)
			if c.bad() > 0 {
				fmt.Printf("%+v said %d stored %d %s\n", c, len(s.said), len(stored), stored)
			}
			w.add(c)
		}
	}
	return nil
}

// upload adds a file and deletes it again.
func (s *site) upload(n int) error {
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	_ = w.WriteField("purpose", "assistants")
	part, err := w.CreateFormFile("file", "notes.txt")
	if err != nil {
		return err
	}
	for i := range 400 {
		fmt.Fprintf(part, "Note %d of %d. %s\n\n", i, n, filler)
	}
	_ = w.Close()
	reply, err := s.do(http.MethodPost, "/files", w.FormDataContentType(), &form)
	if err != nil {
		return err
	}
	_, err = s.do(http.MethodDelete, "/files/"+gjson.GetBytes(reply, "id").Str, "", nil)
	return err
}

func (s *site) do(method, path, contentType string, body io.Reader) ([]byte, error) {
	req, err := http.NewRequest(method, s.proxies[0].url+"/api/v1"+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer sk-trial")
	req.Header.Set("serviceKey", serviceKey)
	req.Header.Set("Content-Type", contentType)
	res, err := s.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	reply, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %d: %s", method, path, res.StatusCode, reply)
	}
	return reply, err
}

func (p *proxy) sample() (s sample, err error) {
	home := fmt.Sprintf("/proc/%d/", p.cmd.Process.Pid)
	status, err := os.ReadFile(home + "status")
	if err != nil {
		return s, err
	}
	_, rss, _ := strings.Cut(string(status), "VmRSS:")
	if _, err := fmt.Sscan(rss, &s.rss); err != nil {
		return s, err
	}
	s.rss /= 1024
	descriptors, err := os.ReadDir(home + "fd")
	if err != nil {
		return s, err
	}
	s.descriptors = float64(len(descriptors))
	s.goroutines, err = p.metric("go_goroutines")
	return s, err
}

// figures are what is drawn, by its name.
var figures = []struct {
	name string
	of   func(sample) float64
}{
	{"RSS in MB", func(s sample) float64 { return s.rss }},
	{"goroutines", func(s sample) float64 { return s.goroutines }},
	{"descriptors", func(s sample) float64 { return s.descriptors }},
}

func write(all []*watched) error {
	f, err := os.Create("soak.csv")
	if err != nil {
		return err
	}
	defer f.Close()
	w := csv.NewWriter(f)
	head := []string{"seconds"}
	rows := 0
	for _, fig := range figures {
		for _, one := range all {
			head = append(head, one.name+": "+fig.name)
			rows = max(rows, len(one.samples))
		}
	}
	_ = w.Write(head)
	for i := range rows {
		row := []string{strconv.Itoa(i * int(every/time.Second))}
		for _, fig := range figures {
			for _, one := range all {
				cell := ""
				if i < len(one.samples) {
					cell = strconv.FormatFloat(fig.of(one.samples[i]), 'f', 1, 64)
				}
				row = append(row, cell)
			}
		}
		_ = w.Write(row)
	}
	w.Flush()
	return errors.Join(w.Error(), f.Close())
}

// report prints the second quarter of the time, when caches have filled, beside
// the last one.
func (w *watched) report(took time.Duration) error {
	fmt.Printf("%s: %.0f s, %d exchanges acknowledged, %d found, %d not as promised, %d told, %d refused, %d failed or left by the client\n",
		w.name, took.Seconds(), w.acknowledged, w.found, w.bad(), w.told, w.refused, w.failed)
	if w.wrong > 0 || w.bad() > 0 {
		return fmt.Errorf("%s: %d exchanges and %d replies were not as promised: %s", w.name, w.bad(), w.wrong, w.example)
	}
	var grown []error
	n := len(w.samples)
	for _, fig := range figures {
		early, late := median(w.samples[n/4:n/2], fig.of), median(w.samples[n*3/4:], fig.of)
		fmt.Printf("%s: %s: %.0f in the second quarter, %.0f in the last\n", w.name, fig.name, early, late)
		if late > 1.5*early+20 {
			grown = append(grown, fmt.Errorf("%s: %s kept growing", w.name, fig.name))
		}
	}
	return errors.Join(grown...)
}

func median(samples []sample, of func(sample) float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	var all []float64
	for _, s := range samples {
		all = append(all, of(s))
	}
	slices.Sort(all)
	return all[len(all)/2]
}
