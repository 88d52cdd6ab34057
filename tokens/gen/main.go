// Command gen makes the vocabularies of package tokens from OpenAI's files
// (https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken and
// cl100k_base.tiktoken), in a third of their size:
//
//	go run ./tokens/gen o200k_base.tiktoken > tokens/o200k_base.bin
package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"strings"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: gen file.tiktoken > file.bin")
	}
	f, err := os.Open(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	out := bufio.NewWriter(os.Stdout)
	if err := convert(out, f); err != nil {
		log.Fatal(err)
	}
	if err := out.Flush(); err != nil {
		log.Fatal(err)
	}
}

// convert reads lines of a token in base64, a space and its rank, and writes
// the tokens alone, each behind its length in a byte: their order is their rank.
func convert(out *bufio.Writer, in io.Reader) error {
	lines := bufio.NewScanner(in)
	for rank := 0; lines.Scan(); rank++ {
		coded, number, _ := strings.Cut(lines.Text(), " ")
		token, err := base64.StdEncoding.DecodeString(coded)
		if err != nil {
			return fmt.Errorf("line %d: %w", rank+1, err)
		}
		if number != strconv.Itoa(rank) || len(token) == 0 || len(token) > 255 {
			return fmt.Errorf("line %d: a token of %d bytes with the rank %q, want 1 to 255 bytes and %d", rank+1, len(token), number, rank)
		}
		out.WriteByte(byte(len(token)))
		out.Write(token)
	}
	return lines.Err()
}
