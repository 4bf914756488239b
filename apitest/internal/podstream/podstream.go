// Package podstream serves the streaming subresources of pods, nodes and services with handlers of tests: logs over plain HTTP,
// exec, attach and port-forward over WebSockets and SPDY, and proxied requests over HTTP.
package podstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/streams"
)

// Target is the subresource of a request.
type Target struct {
	Resource, Namespace, Name, Subresource string
	Rest                                   []string // the path below the subresource
}

// Handler serves streaming subresources. It is safe for concurrent use.
type Handler struct {
	Handlers streams.Handlers
	// Get returns a stored object of the core group.
	Get func(resource, namespace, name string) (map[string]any, bool)
	// Now is the server's clock.
	Now func() time.Time
}

// Serve handles the request. It returns false if the subresource is not a streaming subresource.
func (h *Handler) Serve(w http.ResponseWriter, req *http.Request, target Target) bool {
	switch target.Resource + "/" + target.Subresource {
	case "pods/log", "pods/exec", "pods/attach", "pods/portforward":
		pod, err := h.pod(req, target)
		if err == nil {
			err = h.servePod(w, req, target, pod)
		}
		if err != nil {
			writeError(w, err)
		}
	case "pods/proxy", "services/proxy", "nodes/proxy":
		h.proxy(w, req, target)
	default:
		return false
	}
	return true
}

func (h *Handler) servePod(w http.ResponseWriter, req *http.Request, target Target, pod streams.Pod) error {
	switch target.Subresource {
	case "log":
		return h.logs(w, req, pod)
	case "portforward":
		return h.portForward(w, req, pod)
	}
	return h.session(w, req, target.Subresource, pod)
}

// pod returns the pod with the requested container or its only container, or the API server's error.
func (h *Handler) pod(req *http.Request, target Target) (streams.Pod, error) {
	object, found := h.Get(target.Resource, target.Namespace, target.Name)
	if !found {
		return streams.Pod{}, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, target.Name)
	}
	pod := streams.Pod{Namespace: target.Namespace, Name: target.Name, Object: object, Container: req.URL.Query().Get("container")}
	if target.Subresource == "portforward" {
		return pod, nil
	}
	containers := containerNames(object, "containers")
	initial := containerNames(object, "initContainers")
	switch {
	case pod.Container != "":
		for _, names := range [][]string{containers, initial, containerNames(object, "ephemeralContainers")} {
			for _, name := range names {
				if name == pod.Container {
					return pod, nil
				}
			}
		}
		return streams.Pod{}, apierrors.NewBadRequest(fmt.Sprintf("container %s is not valid for pod %s", pod.Container, pod.Name))
	case len(containers) == 1:
		pod.Container = containers[0]
		return pod, nil
	}
	text := fmt.Sprintf("a container name must be specified for pod %s, choose one of: %s", pod.Name, containers)
	if len(initial) > 0 {
		text += fmt.Sprintf(" or one of the init containers: %s", initial)
	}
	return streams.Pod{}, apierrors.NewBadRequest(text)
}

func containerNames(pod map[string]any, field string) []string {
	var names []string
	for _, container := range nested.Maps(pod, "spec", field) {
		if name, isText := container["name"].(string); isText {
			names = append(names, name)
		}
	}
	return names
}

// proxy strips the path prefix and calls the test's handler.
func (h *Handler) proxy(w http.ResponseWriter, req *http.Request, target Target) {
	if h.Handlers.Proxy == nil {
		writeError(w, notSet("Proxy"))
		return
	}
	handler := h.Handlers.Proxy(target.Resource, target.Namespace, target.Name)
	if handler == nil {
		writeError(w, apierrors.NewServiceUnavailable("no endpoints available for service \""+target.Name+"\""))
		return
	}
	clone := req.Clone(req.Context())
	_, clone.URL.Path, _ = strings.Cut(req.URL.Path, "/proxy")
	if clone.URL.Path == "" {
		clone.URL.Path = "/"
	}
	clone.URL.RawPath = ""
	handler.ServeHTTP(w, clone)
}

func notSet(option string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotImplemented, Reason: "NotImplemented",
		Message: "apitest: no function for this request (set Options." + option + ")",
	}}
}

// writeError writes err as a Status.
func writeError(w http.ResponseWriter, err error) {
	status := statusOf(err)
	body, _ := json.Marshal(status)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_, _ = w.Write(body)
}

// statusOf converts err to a Status with its kind.
func statusOf(err error) metav1.Status {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		known = apierrors.NewInternalError(err)
	}
	status := known.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return status
}
