package table

import (
	"fmt"
	"strconv"
	"time"
)

func podCells(resource string) func(object) []any {
	if resource == "pods" {
		return printPod
	}
	return nil
}

func printPod(o object) []any {
	s := newPodSummary(o)
	s.addInitContainers()
	if !s.initializing || o.hasCondition("Initialized") {
		s.addContainers()
	}
	restarts := strconv.FormatInt(s.restarts, 10)
	if s.restarts != 0 && !s.lastRestart.IsZero() {
		restarts = fmt.Sprintf("%d (%s ago)", s.restarts, o.since(s.lastRestart))
	}
	ip := "<none>"
	if ips := o.list("status", "podIPs"); len(ips) > 0 {
		ip = ips[0].textUnlessEmpty(ip, "ip")
	}
	return []any{
		o.name(), fmt.Sprintf("%d/%d", s.ready, s.total), s.status(), restarts, o.age(), ip,
		o.textUnlessEmpty("<none>", "spec", "nodeName"), o.textUnlessEmpty("<none>", "status", "nominatedNodeName"), readinessGates(o),
	}
}

// podSummary is the state of a pod's containers for its row.
type podSummary struct {
	pod            object
	reason         string
	ready, total   int
	initializing   bool
	restarts       int64
	lastRestart    time.Time
	sidecars       map[string]bool // restartable init containers
	sidecarStarts  int64
	lastSidecar    time.Time
	initContainers int
}

func newPodSummary(o object) *podSummary {
	s := &podSummary{pod: o, reason: o.text("status", "phase"), total: len(o.list("spec", "containers")), sidecars: map[string]bool{}}
	if reason := o.text("status", "reason"); reason != "" {
		s.reason = reason
	}
	for _, condition := range o.list("status", "conditions") {
		if condition.text("type") == "PodScheduled" && condition.text("reason") == "SchedulingGated" {
			s.reason = "SchedulingGated"
		}
	}
	for _, container := range o.list("spec", "initContainers") {
		s.initContainers++
		if container.text("restartPolicy") == "Always" {
			s.sidecars[container.text("name")] = true
			s.total++
		}
	}
	return s
}

// addInitContainers counts restarts of init containers up to the first unfinished or failed container. Started sidecars count as
// finished.
func (s *podSummary) addInitContainers() {
	for i, container := range s.pod.list("status", "initContainerStatuses") {
		restarts := container.number("restartCount")
		finished := container.time("lastState", "terminated", "finishedAt")
		s.restarts += restarts
		s.lastRestart = later(s.lastRestart, finished)
		isSidecar := s.sidecars[container.text("name")]
		if isSidecar {
			s.sidecarStarts += restarts
			s.lastSidecar = later(s.lastSidecar, finished)
		}
		terminated := container.at("state", "terminated")
		waiting := container.text("state", "waiting", "reason")
		switch {
		case terminated.content != nil && terminated.number("exitCode") == 0:
			continue
		case isSidecar && container.flag("started"):
			if container.flag("ready") {
				s.ready++
			}
			continue
		case terminated.content != nil:
			s.reason = "Init:" + terminationReason(terminated)
		case waiting != "" && waiting != "PodInitializing":
			s.reason = "Init:" + waiting
		default:
			s.reason = fmt.Sprintf("Init:%d/%d", i, s.initContainers)
		}
		s.initializing = true
		return
	}
}

func (s *podSummary) addContainers() {
	s.restarts = s.sidecarStarts
	s.lastRestart = s.lastSidecar
	isRunning := false
	failure := ""
	statuses := s.pod.list("status", "containerStatuses")
	for i := len(statuses) - 1; i >= 0; i-- {
		container := statuses[i]
		s.restarts += container.number("restartCount")
		s.lastRestart = later(s.lastRestart, container.time("lastState", "terminated", "finishedAt"))
		terminated := container.at("state", "terminated")
		waiting := container.text("state", "waiting", "reason")
		switch {
		case waiting != "":
			s.reason = waiting
		case terminated.content != nil:
			s.reason = terminationReason(terminated)
			if terminated.number("exitCode") != 0 {
				failure = s.reason
			}
		case container.flag("ready") && container.has("state", "running"):
			isRunning = true
			s.ready++
		}
	}
	if s.reason == "Completed" {
		switch {
		case isRunning && hasReadyCondition(s.pod):
			s.reason = "Running"
		case failure != "":
			s.reason = failure
		case isRunning:
			s.reason = "NotReady"
		}
	}
}

// status returns the cell of the column Status.
func (s *podSummary) status() string {
	phase := s.pod.text("status", "phase")
	switch {
	case s.pod.isDeleted() && s.pod.text("status", "reason") == "NodeLost":
		return "Unknown"
	case s.pod.isDeleted() && phase != "Succeeded" && phase != "Failed":
		return "Terminating"
	}
	return s.reason
}

func terminationReason(terminated object) string {
	if reason := terminated.text("reason"); reason != "" {
		return reason
	}
	if signal := terminated.number("signal"); signal != 0 {
		return fmt.Sprintf("Signal:%d", signal)
	}
	return fmt.Sprintf("ExitCode:%d", terminated.number("exitCode"))
}

func hasReadyCondition(pod object) bool {
	for _, condition := range pod.list("status", "conditions") {
		if condition.text("type") == "Ready" && condition.text("status") == "True" {
			return true
		}
	}
	return false
}

func readinessGates(pod object) string {
	gates := pod.list("spec", "readinessGates")
	if len(gates) == 0 {
		return "<none>"
	}
	count := 0
	for _, gate := range gates {
		if pod.hasCondition(gate.text("conditionType")) {
			count++
		}
	}
	return fmt.Sprintf("%d/%d", count, len(gates))
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// podRowConditions returns the row conditions of a finished pod.
func podRowConditions(o object) []any {
	switch o.text("status", "phase") {
	case "Succeeded":
		return []any{map[string]any{"type": "Completed", "status": "True", "reason": "Succeeded", "message": "The pod has completed successfully."}}
	case "Failed":
		return []any{map[string]any{"type": "Completed", "status": "True", "reason": "Failed", "message": "The pod failed."}}
	}
	return nil
}
