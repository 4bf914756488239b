package exit_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/restmapper"
)

func TestReport_Texts(t *testing.T) {
	notFound := apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "web")
	invalid := &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid, Message: "m", Details: &metav1.StatusDetails{
		Kind: "Pod", Name: "web", Causes: []metav1.StatusCause{{Field: "a", Message: "x"}, {Field: "b", Message: "y"}, {Field: "a", Message: "x"}},
	}}}
	manyLines := &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid, Details: &metav1.StatusDetails{
		Kind: "Pod", Name: "web", Causes: []metav1.StatusCause{{Field: "a", Message: "x\n* b: fake"}, {Field: "c", Message: "y"}},
	}}}
	const denial = "admission webhook \"w\" denied the request: \n\nrequire-labels:\n  app: 'missing'\n\n"
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
		{errors.New("a\nerror: fake"), 1, "error: a\n  error: fake\n"},
		{errors.New("\x1b[2Ja\u009b\b\a\r\nb"), 1, "error: \ufffd[2Ja\ufffd\ufffd\ufffd\n  b\n"},
		{errors.Join(errors.New("a"), errors.New("größer\t世界")), 1, "a\ngrößer\t世界\n"},
		{errors.Join(fmt.Errorf("x: %w", errors.New("a\nb")), errors.New("c")), 1, "x: a\n  b\nc\n"},
		{exit.WithHelp(errors.New("a\nb"), "\nSee help"), 1, "error: a b\nSee help\n"},
		{errors.Join(exit.WithHelp(errors.New("a"), "\nSee help"), nil), 1, "error: a\nSee help\n"},
		{&exit.Error{Code: 7, Err: exit.WithHelp(errors.New("a"), "\nSee help")}, 7, "error: a\nSee help\n"},
		{&apierrors.StatusError{ErrStatus: metav1.Status{Message: "odd\nfake"}}, 1, "Error from server: odd\n  fake\n"},
		{&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonBadRequest, Message: denial}}, 1,
			"Error from server (BadRequest): admission webhook \"w\" denied the request: \n\n  require-labels:\n    app: 'missing'\n"},
		{manyLines, 1, "The Pod \"web\" is invalid: \n* a: x\n  * b: fake\n* c: y\n"},
		{errors.Join(&exit.Error{Code: 7}, errors.New("a")), 7, "error: a\n"},
		{errors.Join(errors.New("a"), &exit.Error{Code: 7}, errors.New("b")), 7, "a\nb\n"},
		{errors.Join(&exit.Error{Code: 7}, &exit.Error{Code: 8}), 7, ""},
		{fmt.Errorf("x: %w", &exit.Error{Code: 7}), 7, ""},
		{&exit.Error{Code: 7}, 7, ""},
		{&exit.Error{Code: 7, Err: errors.New("said")}, 7, "error: said\n"},
		{fmt.Errorf("write: %w", syscall.EPIPE), 1, ""},
		{io.ErrClosedPipe, 1, ""},
		{fmt.Errorf("create: %w", &net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("write", syscall.EPIPE)}), 1,
			"Unable to connect to the server: write tcp: write: broken pipe\n"},
	} {
		var written strings.Builder
		assert.Equal(t, c.code, exit.Report(&written, c.err), "%v", c.err)
		assert.Equal(t, c.want, written.String())
	}
}

func TestState_ErrorfWritesOneLine(t *testing.T) {
	var written strings.Builder
	s := &command.State{Streams: command.Streams{Err: &written}}
	s.Errorf("error: proxy %s %s: %v (%d, %v)", "GET", "/x\nerror: fake\x1b]0;title\a", errors.New("a\r\nb\u2028c\x1b[2K"), 7, time.Second)
	s.Errorf("two lines:\n%s", "größer\u202e 世界\xff\x9b\n")
	assert.Equal(t, "error: proxy GET /x error: fake\ufffd]0;title\ufffd: a  b c\ufffd[2K (7, 1s)\n"+
		"two lines:\ngrößer\ufffd 世界\ufffd\n", written.String())
}

func TestMessage_SilentExitError(t *testing.T) {
	assert.Empty(t, exit.Message(&exit.Error{Code: 7}))
	assert.Equal(t, "a\nb\n", exit.Message(errors.Join(errors.New("a"), &exit.Error{Code: 7}, errors.New("b"))))
}
