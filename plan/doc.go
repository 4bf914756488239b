// Package plan computes what an apply of objects would do, before it is done:
//
//	planned, err := plan.Objects(ctx, client, objects, nil)
//	…
//	err = planned.WriteText(os.Stdout, nil)
//	…
//	_, err = planned.Apply(ctx, client, nil)
//
// # Answers
//
// The API server answers by a dry run wherever it can. It cannot answer for objects in a namespace that the same plan creates, for
// objects of a kind that it defines, for objects of a changed definition, and for the object after a delete. For such objects
// [Options].Copy returns the client of a copy of the cluster. All objects are applied to the copy in their order, so that each object
// sees the objects before it. Without a copy these objects are [NotPlanned].
//
// [Change].AnsweredBy names the source of an answer, and NotValidated lists the checks that were left out: of a copy, the checks that
// its API server lacks; of the server, the checks that depend on other objects of the plan.
//
// # Saved plans
//
// [Plan.Save] writes a plan as JSON, and [Load] reads it. [Plan.Apply] first compares the cluster with the plan and writes nothing if
// an object has changed since. A saved plan contains the objects to apply in full, Secrets included: keep it as safe as the manifests.
// The present values of Secrets are masked in it.
package plan
