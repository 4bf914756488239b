package sharding_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/anykind/anykind/internal/testing/controllertest"
)

func TestMain(m *testing.M) {
	if err := controllertest.Setup(); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
