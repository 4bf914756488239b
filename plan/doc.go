// Package plan computes what an apply of objects would do, before it is done:
//
//	planned, err := plan.Objects(ctx, client, objects, nil)
//	…
//	err = planned.WriteText(os.Stdout, nil)
//	…
//	_, err = planned.Apply(ctx, client, nil)
//
// # Sources
//
// The API server plans by a dry run wherever it can. A dry run fails for objects in a new namespace and of a new kind of the same
// plan, it uses the old schema of a changed definition, and it cannot create an object that still exists. For such objects
// [Options].Copy returns the client of a copy of the cluster. All objects are applied to the copy in their order: each object sees the
// objects before it. Without a copy these objects are [NotPlanned], or the change has a note.
//
// [Change].Source names the source of a change. NotValidated lists the omitted checks: validation that the copy's API server
// lacks, and quotas.
//
// # Saved plans
//
// [Plan.Save] writes a plan as JSON, and [Load] reads it. [Plan.Apply] first compares the cluster with the plan and writes nothing if
// an object has changed since. A saved plan contains the objects to apply in full, Secrets included: keep it as safe as the manifests.
// The present values of Secrets are masked in it.
package plan
