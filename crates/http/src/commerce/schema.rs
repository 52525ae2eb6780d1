//! What the shop's answers look like, for the description. The values are the domain's own, which serialise to this; the
//! tests compare every answer with its schema.

#![allow(dead_code, reason = "these describe what others make")]

use std::collections::BTreeMap;
use utoipa::ToSchema;

/// An amount of money.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct Money {
    /// In minor units: cents for EUR, yen for JPY.
    amount_minor: i64,
    /// ISO 4217.
    #[schema(pattern = "^[A-Z]{3}$")]
    currency: String,
}

/// Where goods go.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct Address {
    receiver: String,
    phone: String,
    city: String,
    street: String,
    #[schema(required = false)]
    postal_code: String,
}

/// The buyer as the order knows them.
#[derive(ToSchema)]
pub(crate) struct BuyerSnapshot {
    username: String,
    phone: String,
}

/// An item of an order: the product as it was, and what it cost, in minor units.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct Item {
    sku_id: String,
    product_id: String,
    product_name: String,
    image_url: String,
    specs: String,
    unit_price: i64,
    quantity: i64,
    total_price: i64,
    discount: i64,
    payable: i64,
}

/// A deduction, with what gave it.
#[derive(ToSchema)]
pub(crate) struct Discount {
    kind: String,
    id: String,
    amount: i64,
}

/// A step in a history.
#[derive(ToSchema)]
pub(crate) struct HistoryEntry {
    state: String,
    #[schema(format = DateTime)]
    at: String,
    by: String,
    why: String,
}

/// What is known of an order's money, in minor units.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct PaymentSummary {
    attempts: Vec<String>,
    payment_id: Option<String>,
    method: Option<String>,
    captured: i64,
    refunding: i64,
    refunded: i64,
    #[schema(format = DateTime)]
    paid_at: Option<String>,
}

/// The last that is known of an order's parcels.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct LatestLogistics {
    status: String,
    location: String,
    #[schema(format = DateTime)]
    time: String,
    parcel_id: String,
}

/// An order; amounts are in minor units.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct Order {
    id: String,
    order_number: String,
    user_id: String,
    buyer: BuyerSnapshot,
    shipping_address: Address,
    items: Vec<Item>,
    subtotal: i64,
    discount: i64,
    discounts: Vec<Discount>,
    shipping_fee: i64,
    total: i64,
    currency: String,
    #[schema(nullable = false)]
    coupon: Option<String>,
    status: String,
    status_history: Vec<HistoryEntry>,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime, nullable = false)]
    hold_until: Option<String>,
    payment: PaymentSummary,
    parcels: Vec<String>,
    #[schema(nullable = false)]
    latest_logistics: Option<LatestLogistics>,
    returns: Vec<ReturnedLine>,
    remark: String,
    version: i64,
}

/// What a list shows of an order.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct OrderSummary {
    id: String,
    order_number: String,
    user_id: String,
    status: String,
    total: i64,
    currency: String,
    #[schema(format = DateTime)]
    created_at: String,
    items: Vec<ItemSummary>,
    version: i64,
}

/// What a list shows of an item.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct ItemSummary {
    product_name: String,
    image_url: String,
    quantity: i64,
}

/// A category, as products carry it.
#[derive(ToSchema)]
pub(crate) struct Category {
    id: String,
    name: String,
    parent: String,
}

/// A variant as its product shows it.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct Variant {
    sku_id: String,
    price: i64,
    attributes: BTreeMap<String, String>,
    /// How many there were a moment ago.
    stock: i64,
}

/// A review as its product shows it.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct ReviewSummary {
    rating: i64,
    text: String,
    user_name: String,
    #[schema(format = DateTime)]
    created_at: String,
}

/// A product; prices are in minor units.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct Product {
    id: String,
    product_name: String,
    brand: String,
    price: i64,
    currency: String,
    image_url: String,
    #[schema(required = false)]
    description: String,
    category: Category,
    attributes: Vec<String>,
    tags: Vec<String>,
    status: String,
    #[schema(format = DateTime)]
    created_at: String,
    skus: Vec<Variant>,
    total_stock: i64,
    sold_count: i64,
    review_count: i64,
    rating_total: i64,
    latest_reviews: Vec<ReviewSummary>,
    version: i64,
}

/// What is there of a SKU.
#[derive(ToSchema)]
pub(crate) struct StockLevel {
    sku: String,
    available: i64,
    held: i64,
    sold: i64,
}

/// A line of the stock ledger.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct LedgerEntry {
    id: String,
    sku_id: String,
    #[schema(rename = "type")]
    movement: String,
    quantity: i64,
    before_stock: i64,
    after_stock: i64,
    held: i64,
    before_held: i64,
    after_held: i64,
    #[schema(nullable = false)]
    order_id: Option<String>,
    reason: String,
    operator: String,
    #[schema(format = DateTime)]
    at: String,
}

/// A SKU whose numbers are not what the ledger and the holds say.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct Discrepancy {
    sku: String,
    available: i64,
    ledger_available: i64,
    held: i64,
    ledger_held: i64,
    holds: i64,
}

/// What a reconciliation found.
#[derive(ToSchema)]
pub(crate) struct Reconciliation {
    skus: u64,
    discrepancies: Vec<Discrepancy>,
    repaired: u64,
}

/// A line of a cart.
#[derive(ToSchema)]
pub(crate) struct Line {
    sku: String,
    quantity: i64,
}

/// What a buyer has in the cart.
#[derive(ToSchema)]
pub(crate) struct Cart {
    lines: Vec<Line>,
    version: i64,
}

/// When and from where somebody was here last.
#[derive(ToSchema)]
pub(crate) struct LastLogin {
    #[schema(format = DateTime)]
    at: String,
    ip: String,
}

/// A buyer.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct Buyer {
    id: String,
    username: String,
    phone: String,
    member_level: String,
    #[schema(nullable = false)]
    default_address: Option<Address>,
    #[schema(nullable = false)]
    last_login: Option<LastLogin>,
    /// How many orders are paid, shipped or signed.
    order_count: i64,
    /// What those come to, when all of them are in one currency; `/spending` has each currency.
    #[schema(nullable = false)]
    total_spent: Option<Money>,
    #[schema(format = DateTime)]
    created_at: String,
}

/// What a coupon takes off: `{"amount": minor units}` or `{"percent": "12.5"}`.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) enum Reduction {
    Amount(i64),
    Percent(String),
}

/// A flash sale that is not over.
#[derive(ToSchema)]
pub(crate) struct OpenSale {
    id: String,
    sku: String,
    /// How many were set aside.
    quantity: i64,
    /// How many of them have no order yet.
    left: i64,
    #[schema(format = DateTime)]
    until: String,
}

/// What a sale's reconciliation found.
#[derive(ToSchema)]
pub(crate) struct SaleLevel {
    /// What Redis would let through.
    left: i64,
    /// What it should be.
    expected: i64,
}

/// A coupon that a buyer holds.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct Coupon {
    coupon_id: String,
    name: String,
    reduction: Reduction,
    threshold: i64,
    currency: String,
    #[schema(format = DateTime)]
    valid_from: String,
    #[schema(format = DateTime)]
    expire_time: String,
    status: String,
    #[schema(nullable = false)]
    order_id: Option<String>,
}

/// What came back of an item; the empty SKU is the shipping fee.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct ReturnedLine {
    sku_id: String,
    quantity: i64,
    refunded: i64,
}

/// A refund; the amount is in minor units.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct Refund {
    key: String,
    amount: i64,
    status: String,
    why: String,
    #[schema(format = DateTime)]
    at: String,
    #[schema(format = DateTime, nullable = false)]
    done_at: Option<String>,
}

/// An attempt to pay an order; amounts are in minor units.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct Payment {
    id: String,
    order_id: String,
    user_id: String,
    amount: i64,
    currency: String,
    method: String,
    status: String,
    status_history: Vec<HistoryEntry>,
    captured: i64,
    refunding: i64,
    refunded: i64,
    reversed: i64,
    refunds: Vec<Refund>,
    #[schema(format = DateTime)]
    created_at: String,
    version: i64,
}

/// What a provider reports of a payment.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct Callback {
    id: String,
    payment_id: String,
    /// `captured`, `failed`, `refunded`, `refund-failed` or `reversed`.
    report: String,
    amount: i64,
    currency: String,
    #[schema(nullable = false)]
    refund_key: Option<String>,
    #[schema(format = DateTime)]
    at: String,
}

/// A parcel.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct Parcel {
    id: String,
    order_id: String,
    carrier: String,
    tracking_number: String,
    #[schema(format = DateTime)]
    created_at: String,
}

/// Something that happened to a parcel.
#[derive(ToSchema)]
pub(crate) struct TrackEvent {
    id: String,
    #[schema(format = DateTime)]
    time: String,
    status: String,
    location: String,
}

/// A return, exchange or complaint.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct AfterSale {
    id: String,
    /// `return`, `exchange` or `complaint`.
    kind: String,
    order_id: String,
    user_id: String,
    lines: Vec<Line>,
    why: String,
    status: String,
    status_history: Vec<HistoryEntry>,
    #[schema(format = DateTime)]
    created_at: String,
    version: i64,
}

/// A review.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct Review {
    id: String,
    product_id: String,
    user_id: String,
    user_name: String,
    rating: i64,
    text: String,
    status: String,
    #[schema(format = DateTime)]
    created_at: String,
}

/// What was asked for.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct ReportAsked {
    by: String,
    from: String,
    to: String,
    zone: Option<String>,
    per_day: bool,
    source: String,
}

/// A row of a report; amounts in minor units.
#[derive(ToSchema)]
pub(crate) struct ReportRow {
    /// The city, product or SKU.
    key: String,
    currency: String,
    #[schema(nullable = false)]
    day: Option<String>,
    orders: i64,
    units: i64,
    sales: i64,
    refunds: i64,
}

/// A report of sales.
#[derive(ToSchema)]
pub(crate) struct Report {
    request: ReportAsked,
    source: String,
    /// What the figures count, and by which date.
    counts: String,
    rows: Vec<ReportRow>,
}

/// Who is told of orders.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct WebhookEndpoint {
    id: String,
    url: String,
    /// What it is told; everything when empty.
    events: Vec<String>,
    /// `active`, or `gone` after it answered that it is.
    status: String,
    #[schema(format = DateTime)]
    created_at: String,
}

/// A new endpoint.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct NewWebhookEndpoint {
    id: String,
    url: String,
    /// What it is told; everything when empty.
    events: Vec<String>,
    status: String,
    #[schema(format = DateTime)]
    created_at: String,
    /// What the calls are signed with; in the first answer only.
    #[schema(required = false)]
    secret: String,
}

/// A delivery to an endpoint.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct WebhookDelivery {
    id: String,
    /// What is told, such as `order.paid`.
    event: String,
    /// `pending`, `delivered` or `failed`.
    status: String,
    /// How often it was tried.
    attempts: i64,
    /// What went wrong the last time.
    #[schema(required = false)]
    why: String,
    /// When it is tried next, while it is pending.
    #[schema(format = DateTime)]
    due: String,
    #[schema(format = DateTime)]
    created_at: String,
}

/// What a buyer's orders come to in one currency.
#[derive(ToSchema)]
pub(crate) struct Spending {
    /// ISO 4217.
    #[schema(pattern = "^[A-Z]{3}$")]
    currency: String,
    orders: i64,
    /// In minor units.
    spent: i64,
}
