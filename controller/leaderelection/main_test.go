package leaderelection_test

import (
	"testing"

	"github.com/anykind/anykind/internal/testing/controllertest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if err := controllertest.Setup(); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
