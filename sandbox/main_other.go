//go:build !unix

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "sandbox: needs Linux or macOS; on Windows, use it inside WSL")
	os.Exit(1)
}
