"""SQL for both databases that keeps a restored site from sending anything twice.

The statements run in the transaction that restores the database, so whatever starts afterwards
finds nothing to send. Sessions end, because passwords may have changed since the backup. The site
cannot know what panels have paid since the backup. So open payments wait for their owner, and a
campaign pays only after its owner has entered the panel's token again.
"""

from datetime import datetime

from core.accounts.models import TOKEN_WARNING_TIME

QUIET_SQL = """
UPDATE webhooks_webhook SET on_since = CURRENT_TIMESTAMP, looked_to = CURRENT_TIMESTAMP
  WHERE on_since IS NOT NULL;
UPDATE webhooks_delivery SET state = 'withheld', data = '{}', lease_token = NULL,
  error = 'The site was restored from a backup.' WHERE state = 'waiting';
UPDATE evaluation_submission SET told_at = CURRENT_TIMESTAMP WHERE told_at IS NULL;
UPDATE tasks_targetfailure SET told_at = CURRENT_TIMESTAMP;
UPDATE annotation_report SET told_at = CURRENT_TIMESTAMP WHERE told_at IS NULL;
UPDATE leaderboard_follow SET told_to = CURRENT_TIMESTAMP;
UPDATE notices_digest SET told_at = CURRENT_TIMESTAMP;
INSERT INTO notices_digest (user_id, told_at, is_off)
  SELECT id, CURRENT_TIMESTAMP, FALSE FROM accounts_user
  WHERE id NOT IN (SELECT user_id FROM notices_digest);
UPDATE campaigns_payment SET state = 'unclear', said = 'The site was restored from a backup.'
  WHERE state IN ('planned', 'prepared', 'sent');
UPDATE campaigns_place SET warned_at = CURRENT_TIMESTAMP
  WHERE state = 'submitted' AND warned_at IS NULL;
UPDATE campaigns_campaign SET sealed_token = '' WHERE sealed_token <> '';
DELETE FROM usersessions_usersession;
DELETE FROM django_session;
DELETE FROM account_emailconfirmation;
"""


def build_statements(now: datetime) -> str:
    """Return all SQL statements, to be run in one transaction."""
    return f"""{QUIET_SQL}
UPDATE accounts_apitoken SET reminded_at = CURRENT_TIMESTAMP
  WHERE reminded_at IS NULL AND expires_at < '{now + TOKEN_WARNING_TIME:%Y-%m-%d %H:%M:%S}';
"""  # noqa: S608
