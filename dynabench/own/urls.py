"""Pages of a task's owners, `/own/<code>/…`."""

from django.urls import path

from dynabench.own import policy, review

app_name = "own"
urlpatterns = [
    path("rounds/<int:number>/policy/", policy.policy, name="policy"),
    path("review/", review.queue, name="review"),
    path("review/<uuid:uuid>/", review.review_example, name="review-example"),
    path("review/<uuid:uuid>/next/", review.review_next, name="review-next"),
    path("review/<uuid:uuid>/undecide/", review.withdraw_decision, name="review-undecide"),
    path("review/<uuid:uuid>/withdraw/", review.withdraw, name="review-withdraw"),
]
