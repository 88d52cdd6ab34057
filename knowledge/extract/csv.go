package extract

import (
	"bufio"
	"encoding/csv"
	"errors"
	"io"
	"strings"
)

// readCSV reads a table of separated values.
func readCSV(o *output, r io.Reader) error {
	buffered := bufio.NewReaderSize(r, 64<<10)
	start, err := buffered.Peek(16 << 10)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return err
	}
	in := csv.NewReader(buffered)
	in.Comma = separator(string(start))
	in.FieldsPerRecord, in.LazyQuotes, in.ReuseRecord = -1, true, true
	for first := true; ; first = false {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := o.row(first, record); err != nil {
			return err
		}
	}
}

// separator finds the character that separates the values: the one that stands
// in the most of the first lines equally often.
func separator(start string) rune {
	lines := strings.Split(start, "\n")
	lines = lines[:min(len(lines), 20)]
	best, most := ',', 0
	for _, c := range []rune{',', ';', '\t', '|'} {
		expected := strings.Count(outsideQuotes(lines[0]), string(c))
		score := 0
		for _, l := range lines {
			if n := strings.Count(outsideQuotes(l), string(c)); n > 0 && n == expected {
				score += 1000 + n
			} else if n > 0 {
				score += n
			}
		}
		if score > most {
			best, most = c, score
		}
	}
	return best
}

// outsideQuotes is what of a line stands in no quotes.
func outsideQuotes(line string) string {
	var b strings.Builder
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 0 {
			b.WriteString(part)
		}
	}
	return b.String()
}
