-- 002: an audit trail
BEGIN;

CREATE TABLE audit (
    at   timestamptz NOT NULL DEFAULT now(),
    what text NOT NULL,
    old  jsonb,
    new  jsonb
);

CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO audit (what, old, new)
    VALUES (TG_TABLE_NAME || ':' || TG_OP, to_jsonb(OLD), to_jsonb(NEW));
    RETURN COALESCE(NEW, OLD);
END
$$;

CREATE TRIGGER users_audit AFTER INSERT OR UPDATE OR DELETE ON users
    FOR EACH ROW EXECUTE FUNCTION audit();

COMMIT;
