package command_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/restmapper"
)

func TestReport_Texts(t *testing.T) {
	notFound := apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "web")
	invalid := &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid, Message: "m", Details: &metav1.StatusDetails{
		Kind: "Pod", Name: "web", Causes: []metav1.StatusCause{{Field: "a", Message: "x"}, {Field: "b", Message: "y"}, {Field: "a", Message: "x"}},
	}}}
	for _, c := range []struct {
		err  error
		code int
		want string
	}{
		{nil, 0, ""},
		{errors.New("plain"), 1, "error: plain\n"},
		{errors.New("error: plain"), 1, "error: plain\n"},
		{notFound, 1, "Error from server (NotFound): pods \"web\" not found\n"},
		{fmt.Errorf("wrapped: %w", notFound), 1, "Error from server (NotFound): pods \"web\" not found\n"},
		{errors.Join(notFound, errors.New("plain")), 1, "Error from server (NotFound): pods \"web\" not found\nplain\n"},
		{errors.Join(nil, errors.Join(notFound)), 1, "Error from server (NotFound): pods \"web\" not found\n"},
		{&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonUnauthorized, Message: "Unauthorized"}}, 1, "error: You must be logged in to the server (Unauthorized)\n"},
		{&apierrors.StatusError{ErrStatus: metav1.Status{Message: "odd"}}, 1, "Error from server: odd\n"},
		{invalid, 1, "The Pod \"web\" is invalid: \n* a: x\n* b: y\n"},
		{&restmapper.NoMatchError{Name: "deploymnt", Suggestions: []string{"deployments.apps"}}, 1, "error: the server doesn't have a resource type \"deploymnt\"\nDid you mean deployments.apps?\n"},
		{&flags.ConfigError{Err: errors.New("no context")}, 1, "Error in configuration: no context\n"},
		{&command.ExitError{Code: 7}, 7, ""},
		{&command.ExitError{Code: 7, Err: errors.New("said")}, 7, "error: said\n"},
		{fmt.Errorf("write: %w", syscall.EPIPE), 1, ""},
		{io.ErrClosedPipe, 1, ""},
	} {
		var written strings.Builder
		assert.Equal(t, c.code, command.Report(&written, c.err), "%v", c.err)
		assert.Equal(t, c.want, written.String())
	}
}
