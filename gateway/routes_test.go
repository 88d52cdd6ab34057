package gateway

import (
	"os"
	"strings"
	"testing"
)

func TestEveryPathOfOursIsInTheReadme(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range table {
		if _, path, _ := strings.Cut(r.pattern, " "); !strings.Contains(string(readme), path+"`") && !strings.Contains(string(readme), path+" ") {
			t.Errorf("%s isn't in the table of paths", r.pattern)
		}
	}
}
