package recall

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// date is a date that a text names. The parts that it leaves out are 0.
type date struct{ year, month, day int }

// contains reports whether the day is the date, or lies in its month or year.
func (d date) contains(year int, month time.Month, day int) bool {
	return (d.year == 0 || d.year == year) && (d.month == 0 || d.month == int(month)) && (d.day == 0 || d.day == day)
}

// weight returns the weight of a day for the date: 1 on it, less on the two days after.
func (d date) weight(day int64) float64 {
	if day == noTime {
		return 0
	}
	t := time.Unix(day*secondsPerDay, 0).UTC()
	if d.contains(t.Date()) {
		return 1
	}
	if d.day != 0 && (d.contains(t.AddDate(0, 0, -1).Date()) || d.contains(t.AddDate(0, 0, -2).Date())) {
		return dayAfterWeight
	}
	return 0
}

const secondsPerDay = 24 * 60 * 60

// day returns the day of a message, counted from 1970; noTime where unknown.
func (m *message) day() int64 {
	if m.time == noTime {
		return noTime
	}
	return floorDay(m.time)
}

func floorDay(seconds int64) int64 {
	day := seconds / secondsPerDay
	if seconds%secondsPerDay < 0 {
		day--
	}
	return day
}

// fromWallClock is the inverse of wallClock.
func fromWallClock(seconds int64) time.Time {
	if seconds == noTime {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

// maxDates is how many dates are read from one text.
const maxDates = 4

// datesIn returns the dates that a text names. Relative ones, such as "yesterday" or
// "last month", need now.
func datesIn(text string, now time.Time) []date {
	var found []date
	words := fields(text)
	for i := 0; i < len(words) && len(found) < maxDates; {
		d, n := dateAt(words[i:], now)
		if n == 0 {
			i++
			continue
		}
		if d.valid() {
			found = append(found, d)
		}
		i += n
	}
	return found
}

func (d date) valid() bool { return d.month <= 12 && d.day <= 31 && d != date{} }

// fields splits a text into lower-case runs of letters, runs of digits, and single
// other characters. It drops white space.
func fields(text string) []string {
	var words []string
	kind := func(r rune) int {
		switch {
		case r >= '0' && r <= '9':
			return 1
		case unicode.Is(unicode.Han, r):
			return 3
		case unicode.IsLetter(r):
			return 2
		}
		return 3
	}
	for i := 0; i < len(text) && len(words) < 4096; {
		r, size := utf8.DecodeRuneInString(text[i:])
		if unicode.IsSpace(r) {
			i += size
			continue
		}
		k, j := kind(r), i+size
		for k != 3 && j < len(text) {
			r, size := utf8.DecodeRuneInString(text[j:])
			if kind(r) != k {
				break
			}
			j += size
		}
		words = append(words, strings.ToLower(text[i:j]))
		i = j
	}
	return words
}

// dateAt reads a date at the start of words, and returns how many words it takes.
func dateAt(words []string, now time.Time) (date, int) {
	if n := number(words[0]); n >= 0 {
		return numeric(words, n)
	}
	if m := months[words[0]]; m > 0 {
		return byMonth(words, m)
	}
	if now.IsZero() {
		return date{}, 0
	}
	return relative(words, now)
}

// numeric reads 2023-05-08, 8.5.2023, 5/8/2023, 8 May 2023, 8th of May, 2023年5月8日
// and a year.
func numeric(words []string, n int) (date, int) {
	at := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	sep := at(1)
	switch b, c := number(at(2)), number(at(4)); {
	case (sep == "-" || sep == "." || sep == "/") && at(3) == sep && b >= 0 && c >= 0:
		switch {
		case isYear(n):
			return date{n, b, c}, 5
		case c < 100:
			c += 2000
		}
		if n > 12 || sep == "." {
			return date{c, b, n}, 5
		}
		return date{c, n, b}, 5
	case sep == "年" && at(3) == "月" && b > 0:
		if c > 0 && at(5) == "日" {
			return date{n, b, c}, 6
		}
		return date{n, b, 0}, 4
	case sep == "月" && at(3) == "日" && b > 0:
		return date{0, n, b}, 4
	case sep == "年":
		return date{n, 0, 0}, 2
	}
	i := 1
	switch at(i) {
	case "st", "nd", "rd", "th", ".":
		i++
	}
	if at(i) == "of" {
		i++
	}
	if m := months[at(i)]; m > 0 && n >= 1 && n <= 31 {
		d := date{0, m, n}
		i++
		if at(i) == "," {
			i++
		}
		if y := number(at(i)); isYear(y) {
			d.year = y
			i++
		}
		return d, i
	}
	if isYear(n) {
		return date{year: n}, 1
	}
	return date{}, 0
}

// byMonth reads May, May 2023, May 8, May 8th, 2023.
func byMonth(words []string, m int) (date, int) {
	d, i := date{month: m}, 1
	next := func() int {
		if i < len(words) {
			return number(words[i])
		}
		return -1
	}
	skip := func(what ...string) {
		for _, w := range what {
			if i < len(words) && words[i] == w {
				i++
				return
			}
		}
	}
	if n := next(); n >= 1 && n <= 31 {
		d.day = n
		i++
		skip("st", "nd", "rd", "th")
	}
	skip(",", "of")
	if n := next(); isYear(n) {
		d.year = n
		i++
	}
	if words[0] == "may" && d.day == 0 && d.year == 0 {
		return date{}, 0 // the verb, more often than not
	}
	return d, i
}

// relative reads today, yesterday, last night, last Friday, last month, last year.
func relative(words []string, now time.Time) (date, int) {
	on := func(t time.Time) date { return date{t.Year(), int(t.Month()), t.Day()} }
	switch words[0] {
	case "today", "tonight", "heute", "hoy", "aujourd":
		return on(now), 1
	case "yesterday", "gestern", "ayer", "hier":
		return on(now.AddDate(0, 0, -1)), 1
	case "last":
		if len(words) < 2 {
			return date{}, 0
		}
		switch words[1] {
		case "night":
			return on(now.AddDate(0, 0, -1)), 2
		case "month":
			t := now.AddDate(0, 0, -now.Day())
			return date{t.Year(), int(t.Month()), 0}, 2
		case "year":
			return date{year: now.Year() - 1}, 2
		}
		if d, ok := weekdays[words[1]]; ok {
			back := (int(now.Weekday())-d+6)%7 + 1
			return on(now.AddDate(0, 0, -back)), 2
		}
	}
	return date{}, 0
}

var weekdays = map[string]int{"sunday": 0, "monday": 1, "tuesday": 2, "wednesday": 3, "thursday": 4, "friday": 5, "saturday": 6}

var months = func() map[string]int {
	m := make(map[string]int)
	for i, names := range []string{"january jan januar enero janvier", "february feb februar febrero février", "march mar märz marzo mars",
		"april apr abril avril", "may mai mayo", "june jun juni junio juin", "july jul juli julio juillet",
		"august aug agosto août", "september sep sept septiembre septembre", "october oct oktober octubre octobre",
		"november nov noviembre novembre", "december dec dezember diciembre décembre"} {
		for _, n := range strings.Fields(names) {
			m[n] = i + 1
		}
	}
	return m
}()

func isYear(n int) bool { return n >= 1900 && n <= 2100 }

// number reads up to four digits; -1 for anything else.
func number(w string) int {
	if w == "" || len(w) > 4 {
		return -1
	}
	n := 0
	for i := range len(w) {
		if w[i] < '0' || w[i] > '9' {
			return -1
		}
		n = n*10 + int(w[i]-'0')
	}
	return n
}
