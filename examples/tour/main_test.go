package main

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/internal/testing/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTour(t *testing.T) {
	c := client.Connect(t, "admin")
	var out bytes.Buffer
	require.NoError(t, tour(t.Context(), c, &out))
	heading := regexp.MustCompile(`^Kubernetes v1\.\d+\.\d+ serves \d+ resources in \d+ API groups\n`)
	require.Regexp(t, heading, out.String())
	assert.Equal(t, `ConfigMap default/anykind-tour: greeting "hello"
deleted configmaps anykind-tour
created ats.cnat.programming-kubernetes.info; the server now serves At
listed breakfast
listed lunch
watched MODIFIED lunch: schedule is now 2026-12-24T12:00:00Z
applied lunch: retries 3, command still "echo lunch"
status of lunch: DONE
deleted ats.cnat.programming-kubernetes.info lunch
deleted customresourcedefinitions.apiextensions.k8s.io ats.cnat.programming-kubernetes.info
`, heading.ReplaceAllString(out.String(), ""))

	for name, object := range map[string]string{"crd": "ats.cnat.programming-kubernetes.info", "cm": "anykind-tour"} {
		left, err := client.Resource(t, c, name).Get(t.Context(), object, nil)
		if err == nil {
			assert.NotNil(t, left.GetDeletionTimestamp(), "%s was not deleted", object)
		} else {
			require.True(t, apierrors.IsNotFound(err), "%v", err)
		}
	}
}
