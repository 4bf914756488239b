package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// act starts writers that read their writes, Wait callers, clients of the servers, and a member in each process. It waits for the members.
func (s *storm) act() {
	for n, p := range s.processes {
		c := s.caches[2*n] // of configMaps
		direct := s.direct(s.steady, configMaps)
		s.actors.Go(func() { s.writeAndRead(c, c.TrackWrites(direct)) })
		s.actors.Go(func() { s.wait(p, fmt.Sprint("wait-", n)) })
		s.actors.Go(func() { s.runMembers(p) })
	}
	require.Eventually(s.t, func() bool { return s.candidates.Load() >= int64(len(s.processes)) }, patience, 10*time.Millisecond)
	var handles []*dynamic.Resource
	for server := range s.servers {
		handles = append(handles, s.direct(server, configMaps))
	}
	for n := range 3 {
		s.actors.Go(func() { s.request(handles, fmt.Sprint("client-", n)) })
	}
}

// newObject returns a ConfigMap with a new value.
func newObject(name string) *unstructured.Object {
	return &unstructured.Object{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"value": fmt.Sprint(rand.Uint64())},
	}}
}

// writeAndRead writes, waits for the write and reads it.
func (s *storm) writeAndRead(c observedCache, tracked *dynamic.Resource) {
	o := s.observer(c.process, Writer, "writer-"+c.name, configMaps, s.namespaces[0]+"/")
	ctx := s.acting
	for sleep(ctx, rand.N(10*time.Millisecond)) == nil {
		key := types.NamespacedName{Namespace: s.namespaces[0], Name: fmt.Sprintf("own-%s-%d", c.name, rand.IntN(3))}
		begin := o.Now()
		if before, found := c.Get(key.Namespace, key.Name); found && rand.IntN(3) == 0 {
			uid := before.GetUID()
			if _, err := tracked.Delete(ctx, key.Name, &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}); err != nil {
				continue
			}
			o.Note(key.String(), uid, Observation{Begin: begin, Kind: Wrote, Expected: Revision(before.GetResourceVersion())})
		} else {
			written, err := tracked.Apply(ctx, newObject(key.Name), &metav1.ApplyOptions{FieldManager: "history", Force: true})
			if err != nil {
				continue
			}
			o.Object(written, Observation{Begin: begin, Kind: Wrote})
		}
		waiting, cancel := context.WithTimeout(ctx, 10*time.Second)
		if c.WaitForWrites(waiting, key) == nil {
			o.Note(key.String(), "", Observation{Kind: Awaited})
			c.readOne(o, key.Namespace, key.Name)
		}
		cancel()
	}
}

// wait calls Wait for random objects of the workload.
func (s *storm) wait(p *process, name string) {
	handle := s.proxied(p, configMaps)
	o := s.observer(p, Waiter, name, configMaps, s.namespaces[0]+"/")
	names := s.load.Names()
	for sleep(s.acting, rand.N(20*time.Millisecond)) == nil {
		target := names[rand.IntN(len(names))]
		waiting, cancel := context.WithTimeout(s.acting, time.Second)
		if rand.IntN(3) == 0 {
			if _, err := handle.Wait(waiting, target, dynamic.Deleted()); err == nil {
				o.Note(s.namespaces[0]+"/"+target, "", Observation{Kind: Returned})
			}
		} else if recorded, err := handle.Wait(waiting, target, dynamic.Matches("drawn", func(obj *unstructured.Object) (bool, error) {
			o.Object(obj, Observation{Kind: Evaluated})
			return rand.IntN(3) == 0, nil
		})); err == nil {
			o.Object(recorded, Observation{Kind: Returned})
		}
		cancel()
	}
}

// request sends requests with preconditions, and consistent reads, to random servers.
func (s *storm) request(handles []*dynamic.Resource, name string) {
	o := s.recorder.Observer(Client, name, configMaps.registry, s.namespaces[0]+"/")
	ctx := s.acting
	known := map[string]string{} // resourceVersions
	for sleep(ctx, rand.N(15*time.Millisecond)) == nil {
		handle := handles[rand.IntN(len(handles))]
		target := fmt.Sprint("register-", rand.IntN(2))
		version := known[target]
		observed := Observation{Begin: o.Now(), Expected: Revision(version)}
		obj := newObject(target)
		var err error
		switch draw := rand.IntN(8); {
		case draw == 0:
			observed.Kind = Create
			observed.Expected = 0
			obj, err = handle.Create(ctx, obj, nil)
		case draw < 4 && version != "":
			observed.Kind = Update
			obj.SetResourceVersion(version)
			obj, err = handle.Update(ctx, obj, nil)
		case draw == 4 && version != "":
			observed.Kind = Delete
			obj = nil
			_, err = handle.Delete(ctx, target, &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}})
		default:
			observed.Kind = Get
			observed.Expected = 0
			obj, err = handle.Get(ctx, target, nil)
		}
		observed.Outcome = outcome(observed.Kind, err)
		if observed.Outcome == Accepted && obj != nil && err == nil {
			known[target] = obj.GetResourceVersion()
			observed.Revision = Revision(known[target])
		}
		if observed.Kind != Get || observed.Outcome != Unknown {
			o.Note(s.namespaces[0]+"/"+target, "", observed)
		}
	}
}

// outcome returns the outcome of a request. A Get may find no object. A missing namespace rejects a Create for another reason.
func outcome(of Kind, err error) Outcome {
	switch {
	case err == nil, of == Get && apierrors.IsNotFound(err):
		return Accepted
	case of == Create && apierrors.IsAlreadyExists(err), of != Get && of != Create && (apierrors.IsNotFound(err) || apierrors.IsConflict(err)):
		return Rejected
	default:
		return Unknown
	}
}
