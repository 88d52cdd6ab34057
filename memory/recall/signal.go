package recall

import "regexp"

var timedRE = regexp.MustCompile(`(?i)\b(yesterday|today|tonight|tomorrow|ago|last|next|since|week|weekend|month|year|years|monday|tuesday|wednesday|thursday|friday|saturday|sunday|january|february|march|april|june|july|august|september|october|november|december|recently|[0-9]+)\b`)

// timed reports whether a text names a time.
func timed(text string) bool { return timedRE.MatchString(text) }

var standingRE = regexp.MustCompile(`(?i)(^|[.!?]\s+|\n)(please )?(always|never|from now on|don't ever)\b|\bi('d| would)? (always |really )?prefer\b`)

// standing reports whether the user tells how things are to be done.
func standing(text string) bool { return standingRE.MatchString(text) }

var whenRE = regexp.MustCompile(`(?i)\b(when|how long|what (date|day|month|year|time)|which (date|day|month|year))\b`)

func asksWhen(text string) bool { return whenRE.MatchString(text) }
