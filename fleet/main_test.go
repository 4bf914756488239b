package fleet_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if err := os.Setenv("ANYKIND_CACHE_MUTATION_DETECTOR", "true"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
