package stream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/internal/limits"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/internal/typememory"
	"github.com/anykind/anykind/transport"
)

// defaultContainer is the annotation by which kubectl chooses among a pod's containers:
// https://kubernetes.io/docs/reference/labels-annotations-taints/#kubectl-kubernetes-io-default-container.
const defaultContainer = "kubectl.kubernetes.io/default-container"

// pod has the decoded fields of a pod.
type pod struct {
	Metadata struct {
		Name, Namespace, UID, ResourceVersion string
		Labels, Annotations                   map[string]string
		DeletionTimestamp                     *string
	}
	Spec struct {
		NodeName                                        string
		InitContainers, Containers, EphemeralContainers []container
	}
	Status struct {
		Phase                                                                string
		Conditions                                                           []podCondition
		InitContainerStatuses, ContainerStatuses, EphemeralContainerStatuses []containerStatus
	}
}

type podCondition struct{ Type, Status string }

type container struct {
	Name  string
	Ports []containerPort
}

type containerPort struct {
	Name, Protocol string
	ContainerPort  uint16
}

type containerStatus struct {
	field            string // of the spec
	Name             string
	RestartCount     int
	State, LastState struct {
		Running    *struct{}
		Terminated *struct{ FinishedAt time.Time }
	}
}

// isReady reports whether a service sends to the pod.
func (p *pod) isReady() bool {
	return isRunning(p) && slices.Contains(p.Status.Conditions, podCondition{"Ready", "True"})
}

// isRunning reports whether commands may run in the pod, ready or not.
func isRunning(p *pod) bool {
	return p.Status.Phase == "Running" && p.Metadata.DeletionTimestamp == nil
}

// mayHaveLog reports whether containers of the pod may have begun to run.
func mayHaveLog(p *pod) bool { return p.Status.Phase != "" && p.Status.Phase != "Pending" }

func (p *pod) notReadyReason() string {
	if p.Metadata.DeletionTimestamp != nil {
		return "terminating"
	}
	if p.Status.Phase == "Running" {
		return "not ready"
	}
	return cmp.Or(p.Status.Phase, "without a phase")
}

// containerStatuses returns those of all containers, in the order in which they run.
func (p *pod) containerStatuses() (all []containerStatus) {
	add := func(field string, statuses []containerStatus) {
		for _, status := range statuses {
			status.field = field
			all = append(all, status)
		}
	}
	add("initContainers", p.Status.InitContainerStatuses)
	add("containers", p.Status.ContainerStatuses)
	add("ephemeralContainers", p.Status.EphemeralContainerStatuses)
	return all
}

// hasLog reports whether the container has begun to run, even if it failed.
func (c *containerStatus) hasLog() bool {
	return c.State.Running != nil || c.State.Terminated != nil || c.LastState.Terminated != nil
}

// defaultContainer returns the container to use where none is named.
func (p *pod) defaultContainer() (string, error) {
	if name := p.Metadata.Annotations[defaultContainer]; name != "" {
		return name, nil
	}
	if len(p.Spec.Containers) == 0 {
		return "", errors.New("the pod has no containers")
	}
	return p.Spec.Containers[0].Name, nil
}

// podList is a page of pods, or all.
type podList struct {
	Metadata struct{ ResourceVersion, Continue string }
	Items    []pod
}

// listPods returns the pages of a list of pods, of at most limit pods each. It changes the query.
func listPods(ctx context.Context, conn *transport.Conn, path string, query url.Values, limit string) iter.Seq2[*podList, error] {
	return func(yield func(*podList, error) bool) {
		query.Set("limit", limit)
		for more := true; more; {
			page := new(podList)
			err := getPage(ctx, conn, path+"?"+query.Encode(), page)
			more = yield(page, err) && err == nil && page.Metadata.Continue != ""
			query.Set("continue", page.Metadata.Continue)
		}
	}
}

// needsContainer reports whether a request failed because its pod has several containers and it names none.
func needsContainer(err error) bool {
	return apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "a container name must be specified")
}

// openContainer calls open with a container's name. Without one the server takes a pod's only container, which costs no
// request; of several it takes none, and open is called again with the pod's default container.
func openContainer[T any](ctx context.Context, conn *transport.Conn, podPath, name string, open func(container string) (T, error)) (T, error) {
	opened, rejected := open(name)
	if name != "" || !needsContainer(rejected) {
		return opened, rejected
	}
	var found pod
	err := getJSON(ctx, conn, podPath, &found)
	if err == nil {
		name, err = found.defaultContainer()
	}
	if err != nil {
		return opened, fmt.Errorf("%w; choosing one failed: %w", rejected, err)
	}
	return open(name)
}

// getJSON decodes an object.
func getJSON(ctx context.Context, conn *transport.Conn, path string, into any) error {
	return getWithin(ctx, conn, path, objectMemory(conn), into)
}

// getPage decodes a page of a list.
func getPage(ctx context.Context, conn *transport.Conn, path string, into any) error {
	return getWithin(ctx, conn, path, limits.Or(conn.MemoryLimits().Page, limits.DefaultPage), into)
}

// objectMemory returns the memory that an object may take.
func objectMemory(conn *transport.Conn) int64 {
	return limits.Or(conn.MemoryLimits().Object, limits.DefaultObject)
}

// getWithin decodes a response that takes at most so many bytes of memory.
func getWithin(ctx context.Context, conn *transport.Conn, path string, memory int64, into any) error {
	response, err := conn.Do(ctx, &transport.Request{Path: path})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	longest := limits.JSON(memory)
	body := &limitedReader{Reader: response.Body, what: "the response", limit: longest, left: longest}
	var text json.RawMessage
	err = json.NewDecoder(body).Decode(&text)
	if err == nil {
		err = unmarshalWithin(text, memory, into)
	}
	if err != nil {
		return fmt.Errorf("GET %s: %w", path, retry.WithContextError(ctx, err))
	}
	return nil
}

// unmarshalWithin is json.Unmarshal of what takes at most so many bytes of memory.
func unmarshalWithin(text []byte, memory int64, into any) error {
	if typememory.Exceeds(text, into, memory) {
		return retry.Terminal(fmt.Errorf("the response needs more than %d MiB of memory (the limit is MemoryLimits of the connection)", memory>>20))
	}
	return json.Unmarshal(text, into)
}

// limitedReader fails after limit bytes, where io.LimitedReader would end.
type limitedReader struct {
	io.Reader

	what        string
	limit, left int64
}

func (l *limitedReader) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, retry.Terminal(fmt.Errorf("%s is larger than %d MiB", l.what, l.limit>>20))
	}
	n, err := l.Reader.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}
