// Package applyset applies a set of objects of any kinds, deletes the objects that left the set (prune), waits until all are ready,
// and reports drift:
//
//	set := applyset.New(client, applyset.Parent{Namespace: "shop", Name: "web"}, nil)
//	events, err := set.Apply(ctx, objects, nil)
//	if err != nil {
//		return err
//	}
//	err = set.Wait(ctx, objects, nil)
//
// It implements KEP-3659, so that kubectl apply --prune --applyset can take over a set and back: see [Set.Handover].
// https://github.com/kubernetes/enhancements/tree/master/keps/sig-cli/3659-kubectl-apply-prune
//
// # Members and parent
//
// Every object of the set has the label applyset.kubernetes.io/part-of. The parent, a Secret by default, records the kinds and
// namespaces of the members in annotations. [Set.Apply] widens this record before it writes an object of a new kind or namespace,
// and narrows it after the last deletion. A run that is interrupted at any request loses no member: the next run continues.
//
// # Order
//
// Objects are applied in the stages of [dynamic.InstallOrder], several at a time within a stage, and deleted in reverse. An object
// waits until its dependencies are ready: its CustomResourceDefinition, its APIService and the objects in the annotation
// config.kubernetes.io/depends-on. Objects without a failed dependency are applied even if others fail. Nothing is deleted unless
// every object was applied.
//
// # Field manager
//
// Objects are applied by server-side apply with a field manager of the set's own: [Set.FieldManager]. The API server therefore
// reports the conflict if two sets contain an object: the label belongs to the first set. The second set gets an
// [*OwnedError], whatever its [ConflictPolicy].
//
// # Unchanged objects
//
// Apply reads the members by a list for each kind. It compares the fields of each object with the live object and with the fields
// of its manager in managedFields, and sends no request for an unchanged object. If nothing changed, Apply writes nothing, the
// parent included.
//
// # Deletion
//
// Prune deletes an object only if it has the label of the set, is of a recorded kind and in a recorded namespace, and has no
// owner. UID and resourceVersion are preconditions. Namespaces and CustomResourceDefinitions with foreign objects are kept unless
// [ApplyOptions] says otherwise.
//
// # Concurrent runs
//
// A run that writes holds a lock in an annotation of the parent. A second run of the same set gets a [*LockedError] with the
// holder. The lock of a process that has ended expires after [Options].LockDuration without a renewal, measured by the clock of the
// waiting process.
package applyset
