package controller_test

import (
	"log"
	"log/slog"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain turns the cache's mutation detector on and silences slog's default logger: most tests let something fail.
func TestMain(m *testing.M) {
	if err := os.Setenv("ANYKIND_CACHE_MUTATION_DETECTOR", "true"); err != nil {
		panic(err)
	}
	flags := log.Flags()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	log.SetOutput(os.Stderr) // which SetDefault has taken away
	log.SetFlags(flags)
	goleak.VerifyTestMain(m)
}
