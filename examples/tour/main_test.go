package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/internal/testing/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// documented returns the output in the README.
func documented(t *testing.T) string {
	t.Helper()
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, block, found := strings.Cut(string(readme), "$ make tour\n")
	require.True(t, found)
	output, _, _ := strings.Cut(block, "```")
	return output
}

func TestTour(t *testing.T) {
	c := client.Connect(t, "admin")
	var out bytes.Buffer
	require.NoError(t, tour(t.Context(), c, &out))
	heading := regexp.MustCompile(`^Kubernetes v1\.\d+\.\d+ serves \d+ resources in \d+ API groups\n`)
	require.Regexp(t, heading, out.String())
	assert.Equal(t, heading.ReplaceAllString(documented(t), ""), heading.ReplaceAllString(out.String(), ""))

	for name, object := range map[string]string{"crd": "ats.cnat.programming-kubernetes.info", "cm": "anykind-tour"} {
		left, err := client.Resource(t, c, name).Get(t.Context(), object, nil)
		if err == nil {
			assert.NotNil(t, left.GetDeletionTimestamp(), "%s was not deleted", object)
		} else {
			require.True(t, apierrors.IsNotFound(err), "%v", err)
		}
	}
}
