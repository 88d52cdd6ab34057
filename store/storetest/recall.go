package storetest

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
)

// handbook is a small corpus, a chunk to a line, and questions are what somebody
// might ask about each line, in words that are partly others.
var handbook = []string{
	"Refunds are paid within fourteen days of the return arriving at our warehouse, to the card that was charged.",
	"Customers outside the European Union pay the customs duties of a return themselves.",
	"The warranty covers manufacturing defects for two years and excludes water damage.",
	"Broken screens are repaired at a fixed price; the courier collects the device the next working day.",
	"Gift cards can't be exchanged for cash and expire three years after they were bought.",
	"Standard shipping takes three to five working days; express orders placed before noon arrive tomorrow.",
	"Employees accrue two and a half vacation days per month and may carry five over to the next year.",
	"Sick leave beyond three days requires a certificate from a doctor.",
	"Travel expenses are reimbursed when receipts are submitted within thirty days.",
	"Passwords must be at least twelve characters long and are never sent by electronic mail.",
	"Report a lost laptop to the security desk at once so that it can be wiped remotely.",
	"The office is closed on public holidays; the building's alarm is armed at eight in the evening.",
	"Backups run every night at two and are kept for ninety days in another region.",
	"The database is restored from a backup by the engineer on call after a second one has agreed.",
	"An incident is declared when more than one percent of requests fail for five minutes.",
	"Invoices are due thirty days after they were issued; reminders cost nothing the first time.",
	"Prices exclude value added tax unless the customer is a consumer.",
	"A subscription renews every month until it is cancelled, and cancelling takes effect at the end of the month.",
	"Student discounts need proof of enrolment each autumn.",
	"Complaints are answered within two working days by the team that caused them.",
}

var questions = []string{
	"when are refunds paid to my card", "customs duties outside the union", "does the warranty exclude water damage",
	"screen broken repair price", "do gift cards expire", "how long does express shipping take", "vacation days carry over next year",
	"sick leave doctor certificate", "travel expenses receipts reimbursed", "how long must passwords be", "lost laptop security",
	"when is the alarm armed in the evening", "how long are backups kept", "who can restore the database from a backup",
	"when is an incident declared", "when are invoices due", "do prices exclude value added tax", "when does cancelling a subscription take effect",
	"proof for student discounts", "how fast are complaints answered",
}

// stopWords are left out of a question, as the callers of a store do.
var stopWords = " a an and are at be by can do does for from how in is it long must my of on the to when who "

func terms(text string) []string {
	var list []string
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }) {
		if !strings.Contains(stopWords, " "+word+" ") {
			list = append(list, word)
		}
	}
	return list
}

// Scores differ between stores; what is found must not by much. The floors are
// those of a search that works: one that ranks by position, or matches all of
// the terms only, stays far below.
func testRecall(t *testing.T, b Backend) {
	b.each(t, map[string]func(*fixture){
		"questions find their answers": func(f *fixture) {
			chunks := words(handbook...)
			for i := range chunks {
				chunks[i].Terms = strings.Join(terms(chunks[i].Text), " ")
			}
			f.upload("a", "handbook", "", chunks)
			f.upload("b", "noise", "", chunks)
			var found, reciprocal float64
			for i, question := range questions {
				for rank, hit := range strings.Fields(f.text("a", 5, terms(question)...)) {
					if hit == fmt.Sprint("handbook/", i) {
						found++
						reciprocal += 1 / float64(rank+1)
					}
				}
			}
			n := float64(len(questions))
			if recall, mrr := found/n, reciprocal/n; recall < 0.95 || mrr < 0.85 {
				f.Errorf("recall@5 is %.2f, want 0.95; MRR is %.2f, want 0.85", recall, mrr)
			}
		},
	})
}
