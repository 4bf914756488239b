package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/anykind/anykind/internal/testing/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The test of folder examples reads logs.
func TestStern_InvalidPattern(t *testing.T) {
	stern := client.Program(t, "default")
	_, err := stern(t.Context(), "", "(")
	require.ErrorContains(t, err, "missing closing )")
	_, err = stern(t.Context(), "")
	require.ErrorContains(t, err, "usage: stern PATTERN")
}
